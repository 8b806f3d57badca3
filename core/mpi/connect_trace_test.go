package mpi

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/engine/meet"
	"github.com/openimpi/impi/internal/engine/proc"
)

// TestStepsInATrace looks for the steps of connecting in what a root has traced: what
// the roots tell each other has the step as its tag, in a context of its own.
func TestStepsInATrace(t *testing.T) {
	m, name := newTestNodes(), make(chan string, 1)
	worlds := [][]*proc.Process{m.world(t, "a", 1), m.world(t, "b", 1)}
	path := filepath.Join(t.TempDir(), "trace.txt")
	worlds[0][0].Job.Trace = path
	apiece(t, worlds, func(w int, c *Comm) error {
		inter, err := rendezvous(c, w == 0, 0, name)
		if err != nil {
			return err
		}
		err = errors.Join(everyoneSends(inter), inter.Disconnect())
		p := worlds[w][0]
		return errors.Join(err, p.ProgressUntil(func() bool { return len(p.Worlds.Remotes) == 0 })) // the temporary link ends in the background
	})
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines, at := strings.Split(string(b), "\n"), 0
	for _, s := range []meet.Step{meet.StepSizes, meet.StepWorlds, meet.StepGroups, meet.StepSync} {
		for _, way := range []string{"->", "<-"} {
			begin, end := "met at a port "+way+" DATA ", fmt.Sprintf(" tag=%d cid=%d", s, uint64(meet.TemporaryContext))
			found := -1
			for i, line := range lines {
				if strings.HasPrefix(line, begin) && strings.HasSuffix(line, end) {
					found = max(found, i)
				}
			}
			if found < at {
				t.Errorf("no line %q...%q after line %d of\n%s", begin, end, at, b)
			}
		}
		for i, line := range lines {
			if strings.HasSuffix(line, fmt.Sprintf(" tag=%d cid=%d", s, uint64(meet.TemporaryContext))) {
				at = max(at, i)
			}
		}
	}
	// A side whose peer has ended its stream first drops the link, and has no stream of its own to
	// end.
	if text := string(b); !strings.Contains(text, "met at a port -> end of stream") && !strings.Contains(text, "met at a port <- end of stream") {
		t.Errorf("no end of the temporary link in\n%s", b)
	}
}
