package ending

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/openimpi/impi/core/blame"
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
	Told   bool // the head of the site has decided it, and has told its operator
	Weight blame.Weight
	At     time.Time // when a proc ended; zero for what is no proc's end
	Cause  error     // that the node met; nil if it was none
	Proc   int       // 1 + the number at its site of the proc that is to blame; 0: none
}

// Error is the text.
func (f *Failure) Error() string { return f.Text }

// Unwrap gives the error that the node met, if it was one.
func (f *Failure) Unwrap() error { return f.Cause }

// Report is what decides whether f is to blame.
func (f *Failure) Report() blame.Report { return blame.Report{Weight: f.Weight, Ended: f.At} }

// After makes the failure of a proc the consequence of what happened to it before.
func (f *Failure) After(loss string) *Failure {
	if loss != "" {
		f.Text += ", after " + loss
		f.Weight = blame.Consequence
	}
	return f
}

// NodeFailed is a failure of the node itself.
func NodeFailed(err error) *Failure {
	return &Failure{Text: err.Error(), Status: StatusNode, Weight: blame.Decided, Cause: err}
}

// TimedOut is the failure of a step that took longer than its limit.
func TimedOut(format string, args ...any) *Failure {
	return &Failure{Text: fmt.Sprintf(format, args...), Status: StatusTimeout, Weight: blame.Decided}
}

// ToldBy is the verdict of another site.
func ToldBy(text string) *Failure {
	return &Failure{Text: text, Status: StatusRemote, Remote: true, Weight: blame.Decided}
}

// ConnectionLost is the failure of a job whose other side went away silently.
func ConnectionLost(text string, cause error) *Failure {
	return &Failure{Text: text, Status: StatusRemote, Weight: blame.Lost, Cause: cause}
}

// Interrupt is the cause of a context that an operator's signal ended.
type Interrupt struct{ Signal syscall.Signal }

// Error names the signal.
func (i Interrupt) Error() string { return launch.SignalName(i.Signal) }

// Interrupted is the failure of a job that its operator ended at a site.
func Interrupted(site string, cause error) *Failure {
	f := NodeFailed(fmt.Errorf("the operator ended the job at site %s (%w)", site, cause))
	var i Interrupt
	if errors.As(cause, &i) {
		f.Status = 128 + int(i.Signal)
	}
	return f
}
