package script

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/mpi"
)

// Two ranks that execute different programs are like a fault of MPI: one of them must find it.
func TestRunSeesWrongResults(t *testing.T) {
	const message = "message 1 from=0 to=1 comm=w tag=1 type=int32 len=9"
	const wild = "message 3 from=1 to=1 comm=w tag=1 type=int32 len=9 anysource=yes\n" +
		"message 1 from=0 to=1 comm=w tag=1 type=int32 len=9 anysource=yes\nisend 1\nisend 3\nrecv 3\nrecv 1\nwait 0 s1\nwait 1 s3"
	other := strings.NewReplacer("message 1", "message 2", "isend 1", "isend 2", "recv 1", "recv 2", "s1", "s2").Replace(wild)
	shorter := strings.Replace(wild, "from=0 to=1 comm=w tag=1 type=int32 len=9", "from=0 to=1 comm=w tag=1 type=int32 len=8 cap=9", 1)
	for name, c := range map[string]struct{ zero, one, want string }{
		"contents":             {"message 2 from=0 to=1 comm=w tag=1 type=int32 len=9\nexchange 2", message + "\nexchange 1", "element 0 of 9"},
		"too short":            {"message 1 from=0 to=1 comm=w tag=1 type=int32 len=8\nexchange 1", message + "\nexchange 1", "got source 0, tag 1, 8 elements, want source 0, tag 1, 9"},
		"half an element":      {"message 1 from=0 to=1 comm=w tag=1 type=int16 len=9\nexchange 1", message + "\nexchange 1", "no elements of int32"},
		"truncated":            {"message 1 from=0 to=1 comm=w tag=1 type=int32 len=10\nexchange 1", message + "\nexchange 1", "truncated"},
		"too long":             {"message 1 from=0 to=1 comm=w tag=1 type=int32 len=10\nexchange 1", message + " cap=20\nexchange 1", "10 elements, want"},
		"a tag":                {"message 1 from=0 to=1 comm=w tag=2 type=int32 len=9\nexchange 1", "message 1 from=0 to=1 comm=w tag=1 type=int32 len=9 anytag=yes\nexchange 1", "tag 2, 9 elements, want source 0, tag 1"},
		"a wildcard":           {other, wild, "or another for it: element 0"},
		"a wildcard's size":    {shorter, wild, "nobody has sent source 0, tag 1, 8"},
		"an unmatched message": {"message 1 from=0 to=1 comm=w tag=3 type=uint16 len=1 mode=standard\nisend 1\nbarrier w\nirecv 1\nwait 0 s1\nwait 1 r1", "barrier w\nunmatched 1 comm=w source=any tag=3", "of which there is no message"},
		"a sum":                {"allreduce w id=2 type=int64 op=sum counts=3", "allreduce w id=1 type=int64 op=sum counts=3", "the result at rank"},
		"a block":              {"gather w id=2 type=int64 root=1 counts=3", "gather w id=1 type=int64 root=1 counts=3", "element 0 of 6"},
		"an order":             {"split w new=a colors=0,0 keys=1,0", "split w new=a colors=0,0 keys=1,2", "in a, want"},
		"a color":              {"split w new=a,b colors=0,1 keys=0,0", "split w new=a colors=0,0 keys=0,0", "rank 0 of 2 in a, want 0 of 1"},
		"no communicator":      {"split w new= colors=none,none keys=0,0", "split w new=a colors=0,0 keys=0,0", "of 1 in a"},
	} {
		err := runDifferent(t, legal(t, "procs 2\n"+c.zero), legal(t, "procs 2\n"+c.one))
		if !errors.Is(err, ErrMismatch) || errors.Is(err, ErrMPI) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// What MPI refuses is distinguished from what it does wrong.
func TestRunTellsMPIErrors(t *testing.T) {
	p := legal(t, "procs 1\nattach 0 10000\ndetach 0")
	x := realRanks(t, 1, 64)[0]
	if err := x.BufferAttach(5); err != nil {
		t.Fatal(err)
	}
	rec := &Record{}
	err := Run(p, realEnv{x}, rec)
	if !errors.Is(err, ErrMPI) || errors.Is(err, ErrMismatch) || !errors.Is(err, message.ErrBuffer) {
		t.Errorf("%v", err)
	}
	if want := "rank 0, step 1, attach 0 10000: "; !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	if rec.Ended || rec.Begun != 1 {
		t.Errorf("%+v", rec)
	}
}

func TestRunRefusesIllegalPrograms(t *testing.T) {
	p, err := Parse("procs 1\nattach 0 10000")
	if err != nil {
		t.Fatal(err)
	}
	if err := Run(p, realEnv{realRanks(t, 1, 64)[0]}, &Record{}); !errors.Is(err, ErrIllegal) {
		t.Errorf("%v", err)
	}
}

// A world of another size than the program's is noticed at once.
func TestRunComparesTheWorld(t *testing.T) {
	p := legal(t, "procs 2\nbarrier w")
	if err := Run(p, realEnv{realRanks(t, 1, 64)[0]}, &Record{}); !errors.Is(err, ErrMismatch) {
		t.Errorf("%v", err)
	}
}

// logged is an Env that keeps its log.
type logged struct {
	realEnv
	lines  []string
	paused time.Duration
}

func (l *logged) Log(format string, args ...any) {
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}
func (l *logged) Pause(d time.Duration) { l.paused += d }

func TestRunLogsItsStepsAndPauses(t *testing.T) {
	p := legal(t, "procs 1\npause 0 3s\nmessage 1 from=0 to=0 comm=w tag=1 type=int8 len=1\nisend 1\nrecv 1\nwait 0 s1")
	env := &logged{realEnv: realEnv{realRanks(t, 1, 64)[0]}}
	if err := Run(p, env, &Record{}); err != nil {
		t.Fatal(err)
	}
	want := []string{"step 1: pause 0 3s", "step 2: isend 1", "step 3: recv 1", "step 4: wait 0 s1"}
	if !slices.Equal(env.lines, want) || env.paused != 3*time.Second {
		t.Errorf("%q, paused %s", env.lines, env.paused)
	}
}

// A job of one rank that no machine was made for uses the package's functions.
func TestRunInAProgram(t *testing.T) {
	if err := mpi.Init(); err != nil {
		t.Fatal(err)
	}
	p := legal(t, `procs 1
attach 0 5000
message 1 from=0 to=0 comm=w tag=1 type=float32 len=9 mode=buffered
send 1
recv 1
detach 0
dup w new=a
allreduce a id=1 type=int op=max counts=3`)
	rec := &Record{}
	if err := Run(p, program{}, rec); err != nil {
		t.Fatal(err)
	}
	if err := Verify(p, []*Record{rec}); err != nil {
		t.Error(err)
	}
	if err := mpi.Finalize(); err != nil {
		t.Error(err)
	}
}

// program is an Env as an ordinary program is one.
type program struct{}

func (program) World() *mpi.Comm    { return mpi.World() }
func (program) Pause(time.Duration) {}
func (program) Log(string, ...any)  {}
