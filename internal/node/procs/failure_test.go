package procs

import (
	"syscall"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/launch"
	"github.com/openimpi/impi/internal/node/ending"
	"github.com/openimpi/impi/internal/node/routes"
)

// TestWhoIsToBlame: of two reports of one node, in any order, which one is told.
func TestWhoIsToBlame(t *testing.T) {
	at := time.Unix(1000, 0)
	w := Who{"alpha", 3, 1}
	proc := func(e launch.Exit, after time.Duration, loss string) *ending.Failure {
		f := procEnded(w, InMPI, e).After(loss)
		f.At = at.Add(after)
		return f
	}
	abort := func(after time.Duration, loss string) *ending.Failure {
		f := procAborted(w, 58, "").After(loss)
		f.At = at.Add(after)
		return f
	}
	segv, exit := launch.Exit{Signal: syscall.SIGSEGV}, launch.Exit{Code: 3}
	const loss = "it had lost its link to rank 2 on site beta"
	for _, c := range []struct {
		name         string
		cause, other *ending.Failure
	}{
		{"a crash, and an abort that follows from it", proc(segv, time.Second, ""), abort(0, loss)},
		{"an exit, and a crash that follows from it", proc(exit, time.Second, ""), proc(segv, 0, loss)},
		{"an exit, and a crash after it", proc(exit, 0, ""), proc(segv, 1, "")},
		{"a crash, and an exit after it", proc(segv, 0, ""), proc(exit, 1, "")},
		{"an abort, and an exit after it", abort(0, ""), proc(exit, 1, "")},
		{"an exit, and an abort after it", proc(exit, 0, ""), abort(1, "")},
		{"a lost machine, and an abort that follows from it", ending.ConnectionLost("channel", nil), abort(0, loss)},
		{"a crash, and the end of a connection", proc(segv, 0, ""), ending.ConnectionLost("channel", nil)},
		{"another site's verdict, and the end of its connection", ending.ToldBy("rank 0"), ending.ConnectionLost("channel", nil)},
		{"another site's verdict, and a consequence", ending.ToldBy("rank 0"), abort(0, loss)},
		{"a time limit, and who ends because of it", ending.TimedOut("limit"), proc(exit, 0, "")},
	} {
		if c.other.Report().Explains(c.cause.Report()) {
			t.Errorf("%s: %q was told, not %q", c.name, c.other, c.cause)
		}
		if !c.cause.Report().Explains(c.other.Report()) {
			t.Errorf("%s: %q came second and was not told", c.name, c.cause)
		}
	}
	if f := abort(0, loss); f.Text != "rank 3 on site alpha called MPI Abort with code 58, after "+loss || f.Status != 58 {
		t.Errorf("%q %d", f.Text, f.Status)
	}
	if first, second := ending.ConnectionLost("a", nil), ending.ConnectionLost("b", nil); second.Report().Explains(first.Report()) {
		t.Error("the second of two connections explains the first one")
	}
}

func TestWords(t *testing.T) {
	w, early := Who{"alpha", 3, 1}, Who{"alpha", routes.NoRank, 1}
	for _, c := range []struct {
		f      *ending.Failure
		text   string
		status int
	}{
		{procEnded(w, InMPI, launch.Exit{Signal: syscall.SIGSEGV, Core: true}), "rank 3 on site alpha was killed by SIGSEGV and dumped core", 139},
		{procEnded(w, InMPI, launch.Exit{Code: 2}), "rank 3 on site alpha exited with status 2", 2},
		{procEnded(w, Greeted, launch.Exit{}), "rank 3 on site alpha exited with status 0 without MPI Finalize", 1},
		{procEnded(early, Starting, launch.Exit{}), "proc 1 of site alpha exited with status 0 before it called MPI Init", 1},
		{procEnded(early, Starting, launch.Exit{Signal: syscall.SIGKILL}), "proc 1 of site alpha was killed by SIGKILL before it called MPI Init", 137},
		{procAborted(w, 256, ""), "rank 3 on site alpha called MPI Abort with code 256", 1},
		{procAborted(w, 9, "why"), "rank 3 on site alpha called MPI Abort with code 9: why", 9},
	} {
		if c.f.Text != c.text || c.f.Status != c.status {
			t.Errorf("%q %d, want %q %d", c.f.Text, c.f.Status, c.text, c.status)
		}
	}
}
