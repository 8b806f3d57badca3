package node

import (
	"fmt"
	"time"

	"github.com/openimpi/impi/core/blame"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/launch"
)

// The exit statuses of a node whose job did not fail by a proc's own status.
const (
	StatusRemote  = 123 // another site failed
	StatusTimeout = 124 // a time limit passed, as with timeout(1)
	StatusNode    = 125 // impi-node could not do its work, as with env(1)
)

// Failure is why a job ended early. Its text names the rank, the site and how.
type Failure struct {
	Text   string
	Status int  // exit status for the node
	Remote bool // another site found it out and told us
	Early  bool // before the job had begun at this site
	weight blame.Weight
	at     time.Time // when a proc ended; zero for what is no proc's end
	cause  error
	local  int // 1 + the number at its site of the proc that is to blame; 0: none
}

// Error is the text.
func (f *Failure) Error() string { return f.Text }

// Unwrap gives the error that the node met, if it was one.
func (f *Failure) Unwrap() error { return f.cause }

// report is what decides whether f is to blame.
func (f *Failure) report() blame.Report { return blame.Report{Weight: f.weight, Ended: f.at} }

// who names a proc for a message; rank is NoRank before startup is over.
type who struct {
	site  string
	rank  wire.WorldRank
	local int
}

const noRank wire.WorldRank = -1

func (w who) String() string {
	if w.rank == noRank {
		return fmt.Sprintf("proc %d of site %s", w.local, w.site)
	}
	return fmt.Sprintf("rank %d on site %s", w.rank, w.site)
}

// procEnded is the failure of a proc that ended in the given phase of its life.
func procEnded(w who, phase procPhase, e launch.Exit) *Failure {
	f := &Failure{Text: fmt.Sprintf("%v %v", w, e), Status: e.Status(), weight: blame.Died, local: w.local + 1}
	switch {
	case phase == starting:
		f.Text += " before it called MPI Init"
	case e.OK():
		f.Text += " without MPI Finalize"
	}
	if f.Status == 0 {
		f.Status = 1
	}
	return f
}

// procAborted is the failure of a proc that called Abort.
func procAborted(w who, code int, reason string) *Failure {
	f := &Failure{Text: fmt.Sprintf("%v called MPI Abort with code %d", w, code), Status: code & 0xff, weight: blame.Died, local: w.local + 1}
	if reason != "" {
		f.Text += ": " + reason
	}
	if f.Status == 0 {
		f.Status = 1
	}
	return f
}

// after makes the failure of a proc the consequence of what happened to it before.
func (f *Failure) after(loss string) *Failure {
	if loss != "" {
		f.Text += ", after " + loss
		f.weight = blame.Consequence
	}
	return f
}

// nodeFailed is a failure of the node itself.
func nodeFailed(err error) *Failure {
	return &Failure{Text: err.Error(), Status: StatusNode, weight: blame.Decided, cause: err}
}

// timedOut is the failure of a step that took longer than its limit.
func timedOut(format string, args ...any) *Failure {
	return &Failure{Text: fmt.Sprintf(format, args...), Status: StatusTimeout, weight: blame.Decided}
}

// toldBy is the verdict of another site.
func toldBy(text string) *Failure {
	return &Failure{Text: text, Status: StatusRemote, Remote: true, weight: blame.Decided}
}

// connectionLost is the failure of a job whose other side went away silently.
func connectionLost(text string, cause error) *Failure {
	return &Failure{Text: text, Status: StatusRemote, weight: blame.Lost, cause: cause}
}
