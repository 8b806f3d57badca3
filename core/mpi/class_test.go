package mpi

import (
	"fmt"
	"testing"

	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/engine/proc"
)

// What a program does wrong has the class that MPI gives it, through every way
// of doing it.
func TestErrorClassesOfCalls(t *testing.T) {
	layout{procs: 2, tagUB: 40_000, dataLen: 16}.run(t, func(t *testing.T, c *Comm) error {
		b, right := make([]byte, 4), 1-c.Rank()
		if err := attach(c, 10); err != nil {
			return err
		}
		inactive, err := SendInit(c, b, right, 0)
		if err != nil {
			return err
		}
		long, err := Isend(c, make([]byte, 100), right, 1)
		if err != nil {
			return err
		}
		failing := make([]Request, 1)
		if failing[0], err = Irecv(c, b, right, 1); err != nil {
			return err
		}
		statuses := make([]Status, 1)
		some := Waitall(failing, statuses)
		if _, err := long.Wait(); err != nil {
			return err
		}
		for _, f := range []struct {
			what string
			err  error
			want mpierr.Class
		}{
			{"send to rank 2", Send(c, b, 2, 0), mpierr.Rank},
			{"send to any", Ssend(c, b, AnySource, 0), mpierr.Rank},
			{"isend to rank -9", second(Isend(c, b, -9, 0)), mpierr.Rank},
			{"receive from rank 2", second(Irecv(c, b, 2, 0)), mpierr.Rank},
			{"probe of rank 2", second(Probe(c, 2, 0)), mpierr.Rank},
			{"plan for rank 2", second(RecvInit(c, b, 2, 0)), mpierr.Rank},
			{"exchange with rank 2", second(Sendrecv(c, b, 2, 0, b, 0, 0)), mpierr.Rank},
			{"tag over the limit", Rsend(c, b, right, 40_001), mpierr.Tag},
			{"send with any tag", Bsend(c, b, right, AnyTag), mpierr.Tag},
			{"negative tag", second(Recv(c, b, right, -5)), mpierr.Tag},
			{"plan with a negative tag", second(SsendInit(c, b, right, -5)), mpierr.Tag},
			{"buffer too small", Bsend(c, b, right, 0), mpierr.Buffer},
			{"second buffer", attach(c, 5), mpierr.Buffer},
			{"some of several", some, mpierr.InStatus},
			{"one of several", statuses[0].Err, mpierr.Truncate},
			{"cancel of nothing", new(Request).Cancel(), mpierr.Request},
			{"cancel of an inactive request", inactive.Cancel(), mpierr.Request},
			{"start of nothing", new(Request).Start(), mpierr.Request},
			{"no message", second(Mrecv[byte](nil, b)), mpierr.Request},
			{"statuses of another length", Waitall(failing, make([]Status, 2)), mpierr.Arg},
			{"root 2", Bcast(c, b, 2), mpierr.Root},
			{"colour -5", second(c.Split(-5, 0)), mpierr.Arg},
			{"more places than ranks", second(c.CartCreate([]int{3}, []bool{false}, false)), mpierr.Dims},
			{"no grid", second(c.CartRank([]int{0})), mpierr.Topology},
		} {
			if f.err == nil || ErrorClass(f.err) != f.want {
				return fmt.Errorf("%s: %v of class %v, want %v", f.what, f.err, ErrorClass(f.err), f.want)
			}
		}
		_, err = detach(c)
		return err
	})
}

// COMM_NULL is an error of class COMM, but before Init it is that which is missing.
func TestNoCommunicator(t *testing.T) {
	if class := ErrorClass(Barrier(nil)); class != mpierr.Other {
		t.Errorf("before Init: class %v", class)
	}
	p := layout{}.start(t)[0]
	proc.ProcessMu.Lock()
	proc.ThisProcess = p
	proc.ProcessMu.Unlock()
	defer func() {
		proc.ProcessMu.Lock()
		proc.ThisProcess = nil
		proc.ProcessMu.Unlock()
	}()
	var none *Comm
	for what, err := range map[string]error{
		"send": Send(none, []byte{1}, 0, 0), "receive": second(Recv(none, []byte{1}, 0, 0)), "probe": second(Probe(none, AnySource, AnyTag)),
		"barrier": Barrier(none), "dup": second(none.Dup()), "split": second(none.Split(0, 0)),
		"grid": second(none.CartCreate([]int{1}, []bool{false}, false)), "place": second(none.CartRank([]int{0})),
	} {
		if ErrorClass(err) != mpierr.Comm {
			t.Errorf("%s: %v of class %v", what, err, ErrorClass(err))
		}
	}
}
