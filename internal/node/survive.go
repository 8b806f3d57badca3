package node

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/procs"
	"github.com/openimpi/impi/internal/wireup"
)

// survival drives the machine that decides what this node does about lost procs, without which its
// job goes on.
type survival struct {
	n      *node
	on     bool
	mu     sync.Mutex
	rules  ending.Survival
	unsaid []wire.Lost   // losses that were not logged yet
	told   []*procs.Proc // procs that have been welcomed, and get losses

	out atomic.Bool // the others go on without this node; read without mu, which may be held until a proc reads
}

// begin has the job go on without what is lost from now on. It returns an error if sites of it do
// not.
func (s *survival) begin() error {
	n := s.n
	if !s.on {
		return nil
	}
	for i, c := range n.job.Clients {
		if !c.Lists(wire.SurviveVersion) {
			return ending.Misconfigured(fmt.Errorf("%s does not go on without procs that are lost: write survive = true in the job files of all sites, or of none", n.routes.ClientName(wire.ClientRank(i))))
		}
	}
	s.with(func(r *ending.Survival) {
		r.Begin(ending.SurvivalNode{
			Job: n.job, FirstHost: n.job.HostOf(n.job.Self, n.routes.HostsBefore), NHosts: len(n.hosts), Together: n.native != nil,
			Name: func() string {
				if n.cluster != nil {
					return n.routes.HostName(n.hosts[0].Rank)
				}
				return "site " + n.opt.Site.Name
			},
		})
	})
	return nil
}

func (s *survival) with(f func(*ending.Survival)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.rules)
}

// excluded reports whether the others continue without this node.
func (s *survival) excluded() bool { return s.out.Load() }

// sum makes the loss of procs, without which the job went on, its failure, unless it has one that
// is not late.
func (s *survival) sum(o *ending.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.say(o.Failure == nil || o.Late)
	s.rules.Sum(o)
}

// Lost makes the job continue without a proc of this node, unless the node ends the proc, as the
// job ends, or the others continue without this node.
func (s *survival) Lost(p *procs.Proc, f *ending.Failure) {
	failing := s.failing()
	s.act(func(r *ending.Survival, now time.Time) []ending.LossStep {
		return r.ProcEnded(now, p.Rank(), p.ID().String(), f, failing)
	})
}

// lostLauncher has the others go on without this site, as the launcher of its own MPI has failed.
// It returns false if that ends the job.
func (s *survival) lostLauncher(f *ending.Failure) bool {
	if !s.on || !s.n.isReady() || s.failing() {
		return false
	}
	s.act(func(r *ending.Survival, now time.Time) []ending.LossStep { return r.LauncherFailed(now, f) })
	return true
}

// Unlinked gives the node time to learn that one of two procs between which a link has broken is
// lost. If neither is, it calls report, which ends the job: data on the link are missing.
func (s *survival) Unlinked(p *procs.Proc, peer wire.WorldRank, report func()) {
	self := p.Rank()
	time.AfterFunc(ending.MaxHoldTime, func() {
		explained := false
		if s.with(func(r *ending.Survival) { explained = r.LinkExplained(self, peer) }); !explained {
			report()
		}
	})
}

func (s *survival) hostDied(host wire.HostRank, f *ending.Failure) {
	s.act(func(r *ending.Survival, now time.Time) []ending.LossStep { return r.ChannelLost(now, host, f) })
}

// loseHosts handles the loss of hosts of this site; hosts has their places in it.
func (s *survival) loseHosts(hosts []int, f *ending.Failure) {
	s.act(func(r *ending.Survival, now time.Time) []ending.LossStep { return r.HostsLost(now, hosts, f) })
}

// lose handles what another host has said of lost procs.
func (s *survival) lose(x wire.Lost) {
	s.act(func(r *ending.Survival, now time.Time) []ending.LossStep { return r.Lost(now, x) })
}

// act tells the machine of an event, and does what it says.
func (s *survival) act(event func(r *ending.Survival, now time.Time) []ending.LossStep) {
	n := s.n
	var steps []ending.LossStep
	s.with(func(r *ending.Survival) { steps = event(r, time.Now()) })
	for _, x := range steps {
		switch x.Action {
		case ending.WarnOfLoss:
			s.sayLater(x.Lost)
		case ending.TellLoss:
			s.tellLost(x.Lost)
		case ending.ProcGone:
			n.hosts[n.procs.OfRank(x.Rank).Host].sw.ProcDone(x.Rank)
		case ending.HostGone:
			for _, h := range n.hosts {
				h.sw.ContinueWithout(x.Host, x.Err)
			}
		case ending.NoteLoss:
			n.end.Report(func(_ time.Time, e *ending.Ending) { e.ReportLate(x.Failure) })
		case ending.Excluded:
			s.out.Store(true)
			n.end.Fail(x.Failure)
		case ending.LossEndsJob:
			n.end.Fail(x.Failure)
		}
	}
}

// endsSoon is how long a warning of lost procs or hosts waits for news that the job ends, which
// ends them, too.
const endsSoon = 500 * time.Millisecond

// sayLater warns the operator, unless the job turns out to end: then its procs and hosts end in any
// order, and nothing goes on without them.
func (s *survival) sayLater(x wire.Lost) {
	s.mu.Lock()
	s.unsaid = append(s.unsaid, x)
	s.mu.Unlock()
	time.AfterFunc(endsSoon, func() {
		goesOn := !s.failing()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.say(goesOn)
	})
}

func (s *survival) failing() (yes bool) {
	s.n.end.Report(func(_ time.Time, e *ending.Ending) { yes = e.Failing() })
	return yes
}

// GoesOnWithout is the warning to the operator about lost procs.
const GoesOnWithout = "the job goes on without procs that are lost"

func (s *survival) say(goesOn bool) {
	for _, x := range s.unsaid {
		switch {
		case !goesOn:
		case s.n.opt.Lost != nil:
			s.n.opt.Lost(x)
		default:
			s.n.log.Warn(GoesOnWithout, "first_rank", x.First, "last_rank", x.Last, "reason", x.Text)
		}
	}
	s.unsaid = nil
}

// Describe adds the lost procs to d.
func (s *survival) Describe(d *links.Node) {
	s.with(func(r *ending.Survival) {
		for i, l := range r.All() {
			d.Lost = append(d.Lost, links.Loss{First: int(l.First), Last: int(l.Last), Host: l.Host, At: r.HeardAt(i), Why: l.Text})
		}
	})
}

// Site reports whether all hosts of a site are lost.
func (s *survival) Site(x *startup.ClientInfo) (lost bool) {
	s.with(func(r *ending.Survival) { lost = r.HasSite(x) })
	return lost
}

func (s *survival) tellLost(l wire.Lost) {
	for _, h := range s.n.hosts {
		h.sw.SendLost(l)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.told {
		tellProc(p, l)
	}
}

// welcomed has a proc told what is lost from now on, and what was while it waited in Init.
func (s *survival) welcomed(p *procs.Proc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, p)
	for _, l := range s.rules.All() {
		tellProc(p, l)
	}
}

func tellProc(p *procs.Proc, l wire.Lost) {
	if p.State() == ending.InMPI {
		_ = p.Send(wireup.Message{Kind: wireup.KindFailed, Peer: l.First, Last: l.Last, Code: int(l.Status), Reason: l.Text}) // it may have ended
	}
}
