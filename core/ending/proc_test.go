package ending

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// TestWhoIsToBlame: of two reports of one node, in any order, which one is told.
func TestWhoIsToBlame(t *testing.T) {
	proc := func(text string, after time.Duration, loss string) *Failure {
		p := Proc{Name: "rank 3", State: InMPI, Loss: loss}
		return p.ended(Exit{Text: text, Status: 3, At: begin.Add(after)})
	}
	abort := func(after time.Duration, loss string) *Failure {
		p := Proc{Name: "rank 3 on site alpha", State: InMPI, Loss: loss}
		return p.aborted(58, "", begin.Add(after))
	}
	const segv, exit = "was killed by SIGSEGV", "exited with status 3"
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
		{"a lost machine, and an abort that follows from it", ConnectionLost("channel", nil), abort(0, loss)},
		{"a crash, and the end of a connection", proc(segv, 0, ""), ConnectionLost("channel", nil)},
		{"another site's verdict, and the end of its connection", RemoteFailure("rank 0"), ConnectionLost("channel", nil)},
		{"another site's verdict, and a consequence", RemoteFailure("rank 0"), abort(0, loss)},
		{"an abort, and the lost link that it follows from", abort(0, loss), (&Proc{Name: "rank 3"}).unlinked("rank 2", "it is broken")},
		{"a time limit, and who ends because of it", TimedOut("limit"), proc(exit, 0, "")},
	} {
		if c.other.Explains(c.cause) {
			t.Errorf("%s: %q was told, not %q", c.name, c.other, c.cause)
		}
		if !c.cause.Explains(c.other) {
			t.Errorf("%s: %q came second and was not told", c.name, c.cause)
		}
	}
	if f := abort(0, loss); f.Text != "rank 3 on site alpha called MPI Abort with code 58, after "+loss || f.Status != 58 {
		t.Errorf("%q %d", f.Text, f.Status)
	}
	if first, second := ConnectionLost("a", nil), ConnectionLost("b", nil); second.Explains(first) {
		t.Error("the second of two connections explains the first one")
	}
}

func TestWords(t *testing.T) {
	proc := func(phase ProcState, text string, status int) *Failure {
		p := Proc{Name: "rank 3", State: phase}
		return p.ended(Exit{Text: text, Status: status})
	}
	abort := func(code int, reason string) *Failure {
		p := Proc{Name: "rank 3", State: InMPI}
		return p.aborted(code, reason, begin)
	}
	for _, c := range []struct {
		f      *Failure
		text   string
		status int
	}{
		{proc(InMPI, "was killed by SIGSEGV", 139), "rank 3 was killed by SIGSEGV", 139},
		{proc(InMPI, "exited with status 2", 2), "rank 3 exited with status 2", 2},
		{proc(Greeted, "exited with status 0", 0), "rank 3 exited with status 0 without MPI Finalize", 1},
		{proc(Starting, "exited with status 0", 0), "rank 3 exited with status 0 before it called MPI Init: was the program compiled by impicc? It seems to use another MPI, or none", 1},
		{proc(Starting, "was killed by SIGKILL", 137), "rank 3 was killed by SIGKILL before it called MPI Init", 137},
		{abort(256, ""), "rank 3 called MPI Abort with code 256", 1},
		{abort(9, "why"), "rank 3 called MPI Abort with code 9: why", 9},
	} {
		if c.f.Text != c.text || c.f.Status != c.status {
			t.Errorf("%q %d, want %q %d", c.f.Text, c.f.Status, c.text, c.status)
		}
	}
	p := Proc{Name: "rank 3", State: InMPI, Aborted: true}
	if f := p.unlinked("rank 2", "it is broken"); f.Text != "rank 3 has lost its link to rank 2: it is broken" || f.Status != StatusNode {
		t.Errorf("%q %d", f.Text, f.Status)
	}
	if f := p.ended(Exit{Status: 3}); f != nil {
		t.Errorf("the end of a proc that had aborted: %v", f)
	}
}

func TestChannelLost(t *testing.T) {
	silent := &link.SilentError{Peer: "10.0.0.1:5", For: 2 * time.Second}
	for _, c := range []struct {
		err    error
		text   string
		weight Precedence
	}{
		{errors.New("reset"), "beta is lost: its connection has broken: reset", Lost},
		{fmt.Errorf("no FINI: %w", io.EOF), "beta is lost: its connection has ended without a word", Lost},
		{fmt.Errorf("%w: no way", agent.ErrUnreached), "beta was not reached: " + agent.ErrUnreached.Error() + ": no way", Lost},
		{fmt.Errorf("%w: bad rank", agent.ErrProtocol), "beta closed its channel before the job's end: " + agent.ErrProtocol.Error() + ": bad rank", Decided},
		{silent, "nothing was heard from beta for 2s: " + link.ErrSilent.Error(), Lost},
		{fmt.Errorf("%w: %w", resume.ErrNotResumed, silent), "nothing was heard from beta for 2s: " + link.ErrSilent.Error() + " (" + resume.ErrNotResumed.Error() + ": " + silent.Error() + ")", Lost},
	} {
		if f := ChannelLost("beta", c.err); f.Text != c.text || f.Precedence != c.weight || f.Status != StatusRemote || !errors.Is(f, c.err) {
			t.Errorf("%+v\nwant %q, weight %d", f, c.text, c.weight)
		}
	}
}
