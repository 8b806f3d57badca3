package ending

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// The exit statuses of a node whose job did not fail by a proc's own status.
const (
	StatusConfig  = 2   // the command line or the job file is wrong
	StatusRemote  = 123 // another site failed
	StatusTimeout = 124 // a time limit passed, as with timeout(1)
	StatusNode    = 125 // impi-node could not do its work, as with env(1)
)

// Precedence ranks failures: of two, the one of higher precedence explains the other.
type Precedence int

const (
	// Unlinked is the loss of a link of a proc that continues. Data on the link may never come, so
	// the job cannot continue, but the end of one of the two procs explains more.
	Unlinked Precedence = iota
	// Consequence is the end of a proc that had lost its link to another proc before. The other
	// proc may have died, or its machine may be lost.
	Consequence
	// Lost is the end of a connection of the node. The process at its other end knows the
	// reason.
	Lost
	// Died is the end of a proc, by exit, signal or MPI_Abort, that had not reported a lost
	// link. The first such proc is to blame, however it ended.
	Died
	// Decided is a failure that needs no explanation: the operator, another site or a time
	// limit ended the job, or the node cannot go on.
	Decided
)

// MaxHoldTime is the longest time that a failure waits for one that explains it.
const MaxHoldTime = 4 * time.Second

// HoldTime returns the time for which a failure of this precedence is held back for one that
// explains it. A failure from another site arrives after that site's own wait and the way through
// the server. For procs that ended the wait is the same at all sites, so that of two sites the one
// whose proc ended first reports first.
func (p Precedence) HoldTime() time.Duration {
	switch p {
	case Unlinked: // longer than the wait at another site for what follows from it
		return MaxHoldTime
	case Consequence, Lost:
		return MaxHoldTime / 2
	case Died:
		return 100 * time.Millisecond
	default:
		return 0
	}
}

// Failure describes why a site's part of a job ended early. Its text names the rank, the site and
// how it failed.
type Failure struct {
	Text       string
	Status     int  // exit status for the node
	Remote     bool // another site detected and reported it
	Early      bool // before the job had begun at this site
	Reported   bool // the head of the site has decided it, and has reported it to its operator
	Precedence Precedence
	At         time.Time // when the proc ended; zero: not a proc's end
	Cause      error     // error that the node met; or nil
	Proc       int       // 1 + the number at its site of the failed proc; 0: none
	Lost       int       // number of procs that the job has continued without
}

// Error returns the text.
func (f *Failure) Error() string { return f.Text }

// Unwrap returns the error that the node met, or nil.
func (f *Failure) Unwrap() error { return f.Cause }

// Explains reports whether f is a better cause than o, which was reported earlier. Of two
// procs the one that ended first is to blame, even if its end was noticed later.
func (f *Failure) Explains(o *Failure) bool {
	switch {
	case f.Precedence != o.Precedence:
		return f.Precedence > o.Precedence
	case f.At.IsZero() || o.At.IsZero():
		return false
	}
	return f.At.Before(o.At)
}

// NodeFailed returns a failure of the node itself.
func NodeFailed(err error) *Failure {
	return &Failure{Text: err.Error(), Status: StatusNode, Precedence: Decided, Cause: err}
}

// Misconfigured returns the failure of a job whose file, key or installation does not fit.
func Misconfigured(err error) *Failure {
	return &Failure{Text: err.Error(), Status: StatusConfig, Precedence: Decided, Cause: err}
}

// TimedOut returns the failure of a step that took longer than its limit.
func TimedOut(format string, args ...any) *Failure {
	return &Failure{Text: fmt.Sprintf(format, args...), Status: StatusTimeout, Precedence: Decided}
}

// RemoteFailure returns a failure that another site has reported.
func RemoteFailure(text string) *Failure {
	return &Failure{Text: text, Status: StatusRemote, Remote: true, Precedence: Decided}
}

// EndedByParents returns the failure of a spawned world that its parents end.
func EndedByParents(text string) *Failure {
	return &Failure{Text: text, Status: 1, Precedence: Decided}
}

// ConnectionLost returns the failure of a job whose other side went away silently.
func ConnectionLost(text string, cause error) *Failure {
	return &Failure{Text: text, Status: StatusRemote, Precedence: Lost, Cause: cause}
}

// ChannelLost returns the failure of a job whose channel to a host ended before the job did, with
// the error err of its agent. host is the name of that host.
func ChannelLost(host string, err error) *Failure {
	if told, ok := errors.AsType[*agent.FailedError](err); ok {
		return RemoteFailure(told.Text)
	}
	f := ConnectionLost(fmt.Sprintf("%s is lost: its connection has broken: %v", host, err), err)
	var silent *link.SilentError
	switch {
	case errors.Is(err, agent.ErrProtocol):
		f.Text = fmt.Sprintf("%s closed its channel before the job's end: %v", host, err)
		f.Precedence = Decided
	case errors.Is(err, io.EOF):
		f.Text = fmt.Sprintf("%s is lost: its connection has ended without a word", host)
	case errors.Is(err, agent.ErrUnreached):
		f.Text = fmt.Sprintf("%s was not reached: %v", host, err)
	case errors.As(err, &silent):
		f.Text = fmt.Sprintf("nothing was heard from %s%s: %v", host, silent.Time(), link.ErrSilent)
		if errors.Is(err, resume.ErrNotResumed) {
			f.Text += fmt.Sprintf(" (%v)", err)
		}
	}
	return f
}

// SpawnedFailed returns the failure of a job caused by the failure f of a world that one of its
// procs has spawned.
func SpawnedFailed(world, by string, f *Failure) *Failure {
	up := *f
	up.Text = fmt.Sprintf("%s, which %s has spawned, failed: %s", world, by, f.Text)
	return &up
}

// FailedSite is a node's view of a site that has failed.
type FailedSite struct {
	Joined       bool // it has begun to join the job
	Spawned      bool // its job is a spawned world, whose parents get its end in another way
	Head         bool // the node reports for the site
	ServesItself bool // the server is in this node, and waits for no other site
	AddressInUse bool // an address of the site is in use, perhaps by the same site, started twice: then the job of the first continues
}

// Declines reports whether the node should inform the server that a site which has failed with f
// will not join. Otherwise the other sites would wait for it until the limit of the start.
func (f *Failure) Declines(a FailedSite) bool {
	return f != nil && !f.Remote && a.Head && !a.Joined && !a.Spawned && !a.ServesItself && !a.AddressInUse
}
