package ending

import (
	"cmp"
	"errors"
	"time"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
)

// Survival decides what a node does about lost procs and hosts in a job that goes on without them:
// which procs are lost together, who is told, and whether it is this node that the others go on
// without (docs/survival.md). Before Begin only ChannelLost may be called, by which the job ends.
// Only one goroutine may use it at a time.
type Survival struct {
	node     SurvivalNode
	losses   Losses
	heard    []time.Time // when each of the losses became known
	excluded bool
}

// SurvivalNode describes a node to its Survival.
type SurvivalNode struct {
	Job       *startup.Job
	FirstHost wire.HostRank // of the hosts whose procs the node runs
	NHosts    int
	Name      func() string // what the others have lost if they go on without the node
	Together  bool          // all procs of the site are lost with its first one: a launcher that the node has no control of has started them
}

// LossAction is what a node has to do about a loss.
type LossAction uint8

// The actions.
const (
	// TellLoss: all hosts that have channels with those of the node are told Lost, and so are its own
	// procs in MPI.
	TellLoss LossAction = iota + 1
	// WarnOfLoss: the operator is warned of Lost, unless it turns out that the job ends.
	WarnOfLoss
	// ProcGone: nothing more comes from proc Rank of the node.
	ProcGone
	// HostGone: channels to Host are given up, for the reason Err.
	HostGone
	// NoteLoss: Failure is that of the job if it meets no other (Ending.ReportLate).
	NoteLoss
	// Excluded: the others go on without the node, which ends by Failure and tells nobody.
	Excluded
	// LossEndsJob: the job ends by Failure.
	LossEndsJob
)

// LossStep is one action.
type LossStep struct {
	Action  LossAction
	Lost    wire.Lost
	Rank    wire.WorldRank
	Host    wire.HostRank
	Err     error
	Failure *Failure
}

var errGivenUp = errors.New("another host has lost it, and the job goes on without it")

// Begin has the job go on without what is lost from now on.
func (s *Survival) Begin(node SurvivalNode) { s.node = node }

// Has reports whether a proc is lost.
func (s *Survival) Has(r wire.WorldRank) bool { return s.losses.Has(r) }

// All returns the losses in the order in which they became known.
func (s *Survival) All() []wire.Lost { return s.losses.All() }

// HeardAt returns when loss i of All became known.
func (s *Survival) HeardAt(i int) time.Time { return s.heard[i] }

// Excluded reports whether the others go on without this node.
func (s *Survival) Excluded() bool { return s.excluded }

// HasSite reports whether all hosts of a site are lost.
func (s *Survival) HasSite(x *startup.ClientInfo) bool {
	for i := range x.NProcs {
		if !s.losses.HasHostOf(x.FirstProc + wire.WorldRank(i)) {
			return false
		}
	}
	return true
}

// ProcEnded returns what to do when a proc of this node has ended in MPI. f is the failure that its
// end is, nil if it has ended in order; name names the proc. Nothing is to be done while the job
// ends, which ends its procs.
func (s *Survival) ProcEnded(now time.Time, r wire.WorldRank, name string, f *Failure, failing bool) []LossStep {
	if failing {
		return nil
	}
	x := wire.Lost{First: r, Last: r, Text: name + " has left MPI"}
	if f != nil {
		x.Text, x.Status = f.Text, uint32(f.Status)
	}
	if s.node.Together {
		x = s.siteOf(x)
	}
	return s.Lost(now, x)
}

// LauncherFailed returns what to do when the launcher of the site's procs has failed, which ends
// them.
func (s *Survival) LauncherFailed(now time.Time, f *Failure) []LossStep {
	return s.Lost(now, s.siteOf(wire.Lost{Status: uint32(f.Status), Text: f.Text}))
}

// siteOf extends a loss to all procs of this site.
func (s *Survival) siteOf(x wire.Lost) wire.Lost {
	c := &s.node.Job.Clients[s.node.Job.Self]
	x.First, x.Last, x.Host = c.FirstProc, lastOf(c.FirstProc, c.NProcs), true
	return x
}

func lastOf(first wire.WorldRank, n int) wire.WorldRank { return first + wire.WorldRank(n) - 1 }

// ChannelLost returns what to do when the channel to a host has ended before the job, which is the
// failure f. What the host's site has said, or done wrong, ends the job; a host that is gone
// without a word is lost with its procs.
func (s *Survival) ChannelLost(now time.Time, host wire.HostRank, f *Failure) []LossStep {
	switch {
	case s.node.Job == nil:
		return []LossStep{{Action: LossEndsJob, Failure: f}}
	case f.Precedence == Lost:
		return append([]LossStep{{Action: HostGone, Host: host, Err: f}}, s.hostLost(now, host, f)...)
	case s.losses.Has(s.node.Job.Hosts[host].FirstProc):
		return nil
	}
	return []LossStep{{Action: LossEndsJob, Failure: f}}
}

// HostsLost returns what to do when hosts of this site are lost, which is the failure f; hosts has
// their places in the site. This host is among them if it has lost the way to its head.
func (s *Survival) HostsLost(now time.Time, hosts []int, f *Failure) (steps []LossStep) {
	for _, x := range hosts {
		steps = append(steps, s.hostLost(now, s.node.Job.HostOf(s.node.Job.Self, x), f)...)
	}
	return steps
}

func (s *Survival) hostLost(now time.Time, host wire.HostRank, f *Failure) []LossStep {
	h := &s.node.Job.Hosts[host]
	return s.Lost(now, wire.Lost{First: h.FirstProc, Last: lastOf(h.FirstProc, h.NProcs), Host: true, Status: uint32(f.Status), Text: f.Text})
}

// withSite extends the loss of a site's head to its other hosts, which end without their head.
func (s *Survival) withSite(x wire.Lost) wire.Lost {
	job := s.node.Job
	h := job.Procs.At(x.First).Host
	if c := &job.Clients[job.Hosts[h].Client]; x.Host && c.FirstHost == h {
		x.First, x.Last = c.FirstProc, lastOf(c.FirstProc, c.NProcs)
	}
	return x
}

// Lost returns what to do about lost procs: everybody whom this node can reach is told, unless it
// is known. A node without which the others go on says nothing more: what it sees end is closed to
// it, and some may not know yet.
func (s *Survival) Lost(now time.Time, x wire.Lost) (steps []LossStep) {
	if s.excluded {
		return nil
	}
	x = s.withSite(x)
	news := s.losses.Add(x)
	if len(news) == 0 {
		return nil
	}
	for range news {
		s.heard = append(s.heard, now)
	}
	steps = append(steps, LossStep{Action: WarnOfLoss, Lost: x})
	for _, l := range news {
		steps = append(steps, LossStep{Action: TellLoss, Lost: l})
		for r := l.First; r <= l.Last; r++ {
			switch {
			case !s.runs(r):
				continue
			case x.Host: // this one, as others see it
				s.excluded = true
				return append(steps, LossStep{Action: Excluded, Failure: s.exclusion(x)})
			}
			steps = append(steps, LossStep{Action: ProcGone, Rank: r})
		}
	}
	for i, h := range s.node.Job.Hosts {
		if x.Host && x.First <= h.FirstProc && h.FirstProc <= x.Last {
			steps = append(steps, LossStep{Action: HostGone, Host: wire.HostRank(i), Err: errGivenUp})
		}
	}
	f := &Failure{Text: x.Text, Status: cmp.Or(int(x.Status), StatusRemote), Precedence: Died}
	if !s.runs(x.First) {
		f.Remote, f.Status = true, StatusRemote
	}
	return append(steps, LossStep{Action: NoteLoss, Failure: f})
}

// runs reports whether a proc is one of this node.
func (s *Survival) runs(r wire.WorldRank) bool {
	h := s.node.Job.Procs.At(r).Host - s.node.FirstHost
	return h >= 0 && int(h) < s.node.NHosts
}

func (s *Survival) exclusion(x wire.Lost) *Failure {
	f := RemoteFailure("the others go on without " + s.node.Name() + ": " + x.Text)
	if s.node.Together {
		f.Status = cmp.Or(int(x.Status), f.Status)
	}
	return f
}

// LinkExplained reports whether a loss explains that the link between two procs has broken. If none
// does within MaxHoldTime that ends the job: data on the link are missing.
func (s *Survival) LinkExplained(one, other wire.WorldRank) bool {
	return s.losses.Has(one) || s.losses.Has(other)
}

// Sum makes the loss of procs, without which the job went on, its failure, unless it has one that
// is not late.
func (s *Survival) Sum(o *Outcome) {
	f := s.losses.Failure()
	if f == nil || o.Failure != nil && !o.Late {
		return
	}
	if o.Failure != nil {
		f.Status, f.Proc, f.Remote = o.Failure.Status, o.Failure.Proc, o.Failure.Remote
	}
	o.Failure, o.Late = f, true
}
