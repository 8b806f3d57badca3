package node

import (
	"syscall"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/launch"
)

// TestWhoIsToBlame: of two reports of one node, in any order, which one is told.
func TestWhoIsToBlame(t *testing.T) {
	at := time.Unix(1000, 0)
	w := who{"alpha", 3, 1}
	proc := func(e launch.Exit, after time.Duration, loss string) *Failure {
		f := procEnded(w, welcomed, e).after(loss)
		f.at = at.Add(after)
		return f
	}
	abort := func(after time.Duration, loss string) *Failure {
		f := procAborted(w, 58, "").after(loss)
		f.at = at.Add(after)
		return f
	}
	segv, exit := launch.Exit{Signal: syscall.SIGSEGV}, launch.Exit{Code: 3}
	const loss = "it had lost its link to rank 2 on site beta"
	for _, c := range []struct {
		name         string
		cause, other *Failure
	}{
		{"a crash, and an abort that follows from it", proc(segv, time.Second, ""), abort(0, loss)},
		{"an exit, and a crash that follows from it", proc(exit, time.Second, ""), proc(segv, 0, loss)},
		{"an exit, and a crash after it", proc(exit, 0, ""), proc(segv, 1, "")},
		{"a crash, and an exit after it", proc(segv, 0, ""), proc(exit, 1, "")},
		{"an abort, and an exit after it", abort(0, ""), proc(exit, 1, "")},
		{"an exit, and an abort after it", proc(exit, 0, ""), abort(1, "")},
		{"a lost machine, and an abort that follows from it", connectionLost("channel", nil), abort(0, loss)},
		{"a crash, and the end of a connection", proc(segv, 0, ""), connectionLost("channel", nil)},
		{"another site's verdict, and the end of its connection", toldBy("rank 0"), connectionLost("channel", nil)},
		{"another site's verdict, and a consequence", toldBy("rank 0"), abort(0, loss)},
		{"a time limit, and who ends because of it", timedOut("limit"), proc(exit, 0, "")},
	} {
		if c.other.report().Explains(c.cause.report()) {
			t.Errorf("%s: %q was told, not %q", c.name, c.other, c.cause)
		}
		if !c.cause.report().Explains(c.other.report()) {
			t.Errorf("%s: %q came second and was not told", c.name, c.cause)
		}
	}
	if f := abort(0, loss); f.Text != "rank 3 on site alpha called MPI Abort with code 58, after "+loss || f.Status != 58 {
		t.Errorf("%q %d", f.Text, f.Status)
	}
	if first, second := connectionLost("a", nil), connectionLost("b", nil); second.report().Explains(first.report()) {
		t.Error("the second of two connections explains the first one")
	}
}
