package ending

import (
	"slices"
	"testing"

	"github.com/openimpi/impi/core/wire"
)

func TestLosses(t *testing.T) {
	var l Losses
	if l.Failure() != nil || l.Has(0) {
		t.Error("something is lost at the start")
	}
	lost := func(first, last wire.WorldRank, text string) wire.Lost {
		return wire.Lost{First: first, Last: last, Text: text}
	}
	for _, c := range []struct {
		x    wire.Lost
		news []wire.Lost
		want string
	}{
		{lost(2, 2, "rank 2 was killed"), []wire.Lost{lost(2, 2, "rank 2 was killed")}, "rank 2 was killed; the job went on without it"},
		{lost(2, 2, "again"), nil, "rank 2 was killed; the job went on without it"},
		{lost(1, 4, "host"), []wire.Lost{lost(1, 1, "host"), lost(3, 4, "host")}, "rank 2 was killed; 4 procs are lost in all; the job went on without them"},
	} {
		if got := l.Add(c.x); !slices.Equal(got, c.news) {
			t.Errorf("%+v: new is %+v, want %+v", c.x, got, c.news)
		}
		if f := l.Failure(); f.Text != c.want || f.Status != StatusRemote {
			t.Errorf("%+v: %+v", c.x, f)
		}
	}
	if len(l.All()) != 3 || l.Has(0) || !l.Has(3) || l.Has(5) {
		t.Error("not those that are lost")
	}
	var own Losses
	own.Add(wire.Lost{First: 1, Last: 1, Status: 137})
	if f := own.Failure(); f.Status != 137 {
		t.Errorf("status %d", f.Status)
	}
}

// A proc that is lost does not end the job, which fails by it if by nothing else.
func TestProcLost(t *testing.T) {
	var e Ending
	p := Proc{Name: "rank 1", Number: 1, State: InMPI}
	f := e.ProcLost(p, Exit{Text: "was killed by SIGKILL", Status: 137})
	if _, waits := e.Deadline(); f == nil || waits || e.FirstLate() != f {
		t.Errorf("%v", f)
	}
	e.Close()
	if o := e.Conclude(nil); o.Failure != f || !o.Late {
		t.Errorf("%+v", o)
	}
}
