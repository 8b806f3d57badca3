package play

import (
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/conformance/script"
)

// Each step of each case has somebody who plays it, and each case in Go has a step that
// calls it.
func TestEveryStepIsPlayed(t *testing.T) {
	used := map[string]bool{}
	var look func(steps []script.Step)
	look = func(steps []script.Step) {
		for _, s := range steps {
			look(s.Body)
			name, _, _ := strings.Cut(s.Text, " ")
			if used[name] = true; name == "each" {
				continue
			}
			func() {
				defer func() {
					if p := recover(); p != nil {
						t.Errorf("%s: %v", s.At, p)
					}
				}()
				verbNamed(name)
			}()
		}
	}
	for _, c := range texts() {
		look(c.Steps)
	}
	for name := range plays {
		if !used[name] {
			t.Errorf("no case has the step %s", name)
		}
	}
}
