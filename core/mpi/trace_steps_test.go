package mpi

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/engine/construct"
	"github.com/openimpi/impi/internal/engine/meet"
	"github.com/openimpi/impi/internal/engine/proc"
)

var stepLine = regexp.MustCompile(`(?m)^(accept|connect|spawn|intercomm_create)(?:#\d+)? step (\d+): \S`)

// trace returns a proc's trace.
func (m *testNodes) trace(t *testing.T, name string, rank int) string {
	t.Helper()
	b, err := os.ReadFile(m.traceOf(name, rank))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// stepsIn returns the steps that a trace shows: "accept 0", "accept 3" and so on.
func (m *testNodes) stepsIn(t *testing.T, name string, rank int) (list []string) {
	t.Helper()
	b := m.trace(t, name, rank)
	for _, x := range stepLine.FindAllStringSubmatch(b, -1) {
		list = append(list, x[1]+" "+x[2])
	}
	return list
}

// taken are steps of a procedure.
func taken(procedure string, steps ...int) (list []string) {
	for _, s := range steps {
		list = append(list, fmt.Sprint(procedure, " ", s))
	}
	return list
}

// The steps of who is what, by section 9 of the reference. Members other than roots
// hear in the fifth that there is a temporary link.
var (
	acceptRoot   = []int{3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	connectRoot  = append([]int{1, 2}, acceptRoot[2:]...)
	memberOfSide = []int{5, 6, 8, 10, 12, 13, 15}
)

// TestEveryStepIsTraced connects two jobs, twice, by roots that are not rank 0: each
// proc's trace has all steps that it takes, in order.
func TestEveryStepIsTraced(t *testing.T) {
	m, name := newTestNodes(), make(chan string, 1)
	m.traces = t.TempDir()
	apiece(t, [][]*proc.Process{m.world(t, "a", 3), m.world(t, "b", 4)}, func(w int, c *Comm) error {
		for range 2 {
			inter, err := rendezvous(c, w == 0, 1, name)
			if err != nil {
				return err
			}
			if err := errors.Join(everyoneSends(inter), inter.Disconnect()); err != nil {
				return err
			}
		}
		return nil
	})
	for w, size := range []int{3, 4} {
		for rank := range size {
			once := taken([]string{"accept", "connect"}[w], memberOfSide...)
			switch {
			case rank == 1 && w == 0:
				once = taken("accept", append([]int{0}, acceptRoot...)...)
			case rank == 1:
				once = taken("connect", connectRoot...)
			}
			if got, want := m.stepsIn(t, []string{"a", "b"}[w], rank), append(once, once...); !slices.Equal(got, want) {
				t.Errorf("world %d, rank %d: %q, want %q", w, rank, got, want)
			}
		}
	}
}

// TestStepsOfSpawn is TestEveryStepIsTraced for a spawn: on the parents' side those of
// accept come between the fifth and the sixth, in the children those of connect
// between the fourth and the sixth.
func TestStepsOfSpawn(t *testing.T) {
	m, parents, b := family(t)
	m.traces = t.TempDir()
	for r, p := range parents {
		p.Job.Trace = m.traceOf("parents", r)
	}
	apiece(t, [][]*proc.Process{parents}, func(_ int, c *Comm) error {
		inter, codes, err := c.Spawn(Command{Path: "child", Procs: 3}, 1)
		if err != nil {
			return err
		}
		return errors.Join(expect("codes", len(codes), 3), everyoneSends(inter), inter.Disconnect())
	})
	b.children.Wait()
	within := func(before []int, procedure string, steps []int, after ...int) []string {
		return slices.Concat(taken("spawn", before...), taken(procedure, steps...), taken("spawn", after...))
	}
	for world, wants := range map[string][][]string{
		"parents": {
			within([]int{3, 4, 5}, "accept", memberOfSide, 6, 7),
			slices.Concat(taken("accept", 0), within([]int{1, 2, 3, 4, 5}, "accept", acceptRoot, 6, 7)),
		},
		"children": {
			within([]int{3, 4}, "connect", connectRoot, 6, 7),
			within([]int{3, 4}, "connect", memberOfSide, 6, 7),
			within([]int{3, 4}, "connect", memberOfSide, 6, 7),
		},
	} {
		for rank, want := range wants {
			if got := m.stepsIn(t, world, rank); !slices.Equal(got, want) {
				t.Errorf("%s, rank %d: %q, want %q", world, rank, got, want)
			}
		}
	}
}

// TestMessagesHaveTheStep looks at messages in a side: from the eighth step on their tag
// says to which one they belong, and they are between the lines of the steps before and
// after.
func TestMessagesHaveTheStep(t *testing.T) {
	m, name := newTestNodes(), make(chan string, 1)
	m.traces = t.TempDir()
	apiece(t, [][]*proc.Process{m.world(t, "a", 2), m.world(t, "b", 1)}, func(w int, c *Comm) error {
		inter, err := rendezvous(c, w == 0, 0, name)
		if err != nil {
			return err
		}
		return inter.Disconnect()
	})
	for rank, way := range []string{"->", "<-"} {
		b, at := m.trace(t, "a", rank), 0
		for _, s := range []meet.Step{meet.StepTellSizes, meet.StepTellWorlds, meet.StepTellGroups, meet.StepBarrier} {
			message := regexp.MustCompile(fmt.Sprintf(` %s DATA .* lsrank=%d tag=%d cid=1\n`, way, construct.ByStepBase, meet.StepTag(1, s)))
			found := message.FindStringIndex(b[at:])
			if found == nil {
				t.Fatalf("rank %d: no %v after byte %d of\n%s", rank, message, at, b)
			}
			at += found[1]
			line := fmt.Sprintf("accept#1 step %d: ", s)
			if i := strings.Index(b[at:], line); i < 0 {
				t.Fatalf("rank %d: no %q after the message of\n%s", rank, line, b)
			}
		}
	}
}

// TestFailureIsTraced: the last line says where and why a connect has failed.
func TestFailureIsTraced(t *testing.T) {
	m := newTestNodes()
	m.traces = t.TempDir()
	apiece(t, [][]*proc.Process{m.world(t, "a", 2)}, func(_ int, c *Comm) error {
		if _, err := c.Connect("no port", nil, 0); err == nil {
			return errors.New("it connected")
		}
		return nil
	})
	for rank, want := range []string{"connect#1: failed with MPI_ERR_PORT: step 1 of connecting: ", "connect#1: failed with MPI_ERR_PORT: step 5 of connecting: "} {
		lines := strings.Split(strings.TrimSpace(m.trace(t, "a", rank)), "\n")
		if last := lines[len(lines)-1]; !strings.HasPrefix(last, want) {
			t.Errorf("rank %d: the last line is %q, want %q...", rank, last, want)
		}
	}
}

// TestNoTraceCostsNothing: a step that nobody wants to see makes no garbage.
func TestNoTraceCostsNothing(t *testing.T) {
	p := newTestNodes().world(t, "a", 1)[0]
	m := &meet.Meeting{P: p, C: p.Comms.World, Steps: p.Trace.Procedure(proc.ToConnect)}
	if n := testing.AllocsPerRun(100, func() {
		m.TraceStep(meet.StepMake, func() string { return fmt.Sprint(m.Context, m.Root) })
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
