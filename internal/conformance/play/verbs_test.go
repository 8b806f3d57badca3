package play

import (
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/conformance/script"
)

// Each step of each case and routine has somebody who plays it, and there is no step and no
// routine that no case has.
func TestEveryStepIsPlayed(t *testing.T) {
	used := map[string]bool{}
	var look func(steps []script.Step)
	look = func(steps []script.Step) {
		for _, s := range steps {
			look(s.Body)
			name, _, _ := strings.Cut(s.Text, " ")
			_, routine := texts().Routines[name]
			if used[name] = true; routine || name == "each" || name == "when" {
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
	for _, c := range texts().Cases {
		look(c.Steps)
	}
	for _, r := range texts().Routines {
		look(r.Steps)
	}
	for name := range texts().Routines {
		if !used[name] {
			t.Errorf("no case has the routine %s", name)
		}
	}
	for _, verbs := range allVerbs() {
		for name := range verbs {
			if !used[name] {
				t.Errorf("no case has the step %s", name)
			}
			if _, twice := texts().Routines[name]; twice {
				t.Errorf("%s is a step and a routine", name)
			}
		}
	}
}
