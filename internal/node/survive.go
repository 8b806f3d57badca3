package node

import (
	"cmp"
	"errors"
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

// survival is what a node knows of the procs without which its job goes on.
type survival struct {
	n        *node
	on       bool
	mu       sync.Mutex
	losses   ending.Losses
	heard    []time.Time   // of each of the losses
	unsaid   []wire.Lost   // losses that were not logged yet
	told     []*procs.Proc // procs that have been welcomed, and get losses
	excluded atomic.Bool   // the others continue without this node
}

func (s *survival) has(r wire.WorldRank) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.losses.Has(r)
}

// sum makes the loss of procs, without which the job went on, its failure, unless it has one that
// is not late.
func (s *survival) sum(o *ending.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.say(o.Failure == nil || o.Late)
	f := s.losses.Failure()
	if f == nil || o.Failure != nil && !o.Late {
		return
	}
	if o.Failure != nil {
		f.Status, f.Proc, f.Remote = o.Failure.Status, o.Failure.Proc, o.Failure.Remote
	}
	o.Failure, o.Late = f, true
}

func mayNotSurvive(n *node) error {
	if !n.survival.on {
		return nil
	}
	for i, c := range n.job.Clients {
		if !c.Lists(wire.SurviveVersion) {
			return ending.Misconfigured(fmt.Errorf("%s does not go on without procs that are lost: write survive = true in the job files of all sites, or of none", n.routes.ClientName(wire.ClientRank(i))))
		}
	}
	return nil
}

// withoutServer reports whether the job goes on although the server that is embedded here has
// failed: it has lost the last other site that had not ended its part. This site learns by its
// channels what that means.
func (s *survival) withoutServer(f *ending.Failure) bool {
	return s.on && s.n.isReady() && errors.Is(f, startup.ErrLost)
}

// Lost makes the job continue without a proc of this node, unless the node ends the proc, as the
// job ends, or the others continue without this node.
func (s *survival) Lost(p *procs.Proc, f *ending.Failure) {
	if s.failing() {
		return
	}
	x := wire.Lost{First: p.Rank(), Last: p.Rank(), Text: p.ID().String() + " has left MPI"}
	if f != nil {
		x.Text, x.Status = f.Text, uint32(f.Status)
	}
	if s.n.native != nil {
		x = s.siteOf(x)
	}
	s.lose(x)
}

// siteOf extends a loss to all of this site: the launcher of its own MPI ends all procs with the
// first one.
func (s *survival) siteOf(x wire.Lost) wire.Lost {
	c := &s.n.job.Clients[s.n.job.Self]
	x.First, x.Last, x.Host = c.FirstProc, c.FirstProc+wire.WorldRank(c.NProcs)-1, true
	return x
}

// lostLauncher has the others go on without this site, as the launcher of its own MPI has failed.
// It returns false if that ends the job.
func (s *survival) lostLauncher(f *ending.Failure) bool {
	if !s.on || !s.n.isReady() || s.failing() {
		return false
	}
	s.lose(s.siteOf(wire.Lost{Status: uint32(f.Status), Text: f.Text}))
	return true
}

// Unlinked gives the node time to learn that one of two procs between which a link has broken is
// lost. If neither is, it calls report, which ends the job: data on the link are missing.
func (s *survival) Unlinked(p *procs.Proc, peer wire.WorldRank, report func()) {
	self := p.Rank()
	time.AfterFunc(ending.MaxHoldTime, func() {
		if !s.has(peer) && !s.has(self) {
			report()
		}
	})
}

// hostDied handles the loss of a channel. What another site has said, or done wrong, ends the job;
// a host that is gone without a word is lost with its procs.
func (s *survival) hostDied(host wire.HostRank, f *ending.Failure) {
	n := s.n
	if !s.on || f.Precedence != ending.Lost {
		if !s.has(n.job.Hosts[host].FirstProc) {
			n.end.Fail(f)
		}
		return
	}
	s.goOnWithout(host, f)
	h := n.job.Hosts[host]
	s.lose(wire.Lost{First: h.FirstProc, Last: h.FirstProc + wire.WorldRank(h.NProcs) - 1, Host: true, Status: uint32(f.Status), Text: f.Text})
}

// loseHosts handles the loss of hosts of this site; hosts has their places in it.
func (s *survival) loseHosts(hosts []int, f *ending.Failure) {
	n := s.n
	for _, x := range hosts {
		h := n.job.Hosts[n.job.Clients[n.job.Self].FirstHost+wire.HostRank(x)]
		s.lose(wire.Lost{First: h.FirstProc, Last: h.FirstProc + wire.WorldRank(h.NProcs) - 1, Host: true, Status: uint32(f.Status), Text: f.Text})
	}
}

// all extends the loss of a site's head to its other hosts, which end without their head.
func (s *survival) all(x wire.Lost) wire.Lost {
	job := s.n.job
	h := job.Procs.At(x.First).Host
	if c := &job.Clients[job.Hosts[h].Client]; x.Host && c.FirstHost == h {
		x.First, x.Last = c.FirstProc, c.FirstProc+wire.WorldRank(c.NProcs)-1
	}
	return x
}

func (s *survival) goOnWithout(host wire.HostRank, why error) {
	for _, h := range s.n.hosts {
		h.loop.ContinueWithout(host, why)
	}
}

var errGivenUp = errors.New("another host has lost it, and the job goes on without it")

// lose tells everybody whom this node can reach that procs are lost, unless it is known. A node
// without which the others go on says nothing more: what it sees end is closed to it, and some may
// not know yet.
func (s *survival) lose(x wire.Lost) {
	if s.excluded.Load() {
		return
	}
	n := s.n
	x = s.all(x)
	s.mu.Lock()
	news := s.losses.Add(x)
	for range news {
		s.heard = append(s.heard, time.Now())
	}
	s.mu.Unlock()
	if len(news) == 0 {
		return
	}
	s.sayLater(x)
	for _, l := range news {
		s.tellLost(l)
		for r := l.First; r <= l.Last; r++ {
			p := n.procs.OfRank(r)
			switch {
			case p == nil:
				continue
			case x.Host: // this one, as others see it
				s.excluded.Store(true)
				who := "site " + n.opt.Site.Name
				if n.cluster != nil {
					who = n.routes.HostName(n.job.Procs.At(r).Host)
				}
				f := ending.RemoteFailure(fmt.Sprintf("the others go on without %s: %s", who, x.Text))
				if n.native != nil {
					f.Status = cmp.Or(int(x.Status), f.Status)
				}
				n.end.Fail(f)
				return
			}
			n.hosts[p.Host].loop.ProcDone(r)
		}
	}
	for i, h := range n.job.Hosts {
		if x.Host && x.First <= h.FirstProc && h.FirstProc <= x.Last {
			s.goOnWithout(wire.HostRank(i), errGivenUp)
		}
	}
	f := &ending.Failure{Text: x.Text, Status: cmp.Or(int(x.Status), ending.StatusRemote), Precedence: ending.Died}
	if n.procs.OfRank(x.First) == nil {
		f.Remote, f.Status = true, ending.StatusRemote
	}
	n.end.Report(func(_ time.Time, e *ending.Ending) { e.ReportLate(f) })
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
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, l := range s.losses.All() {
		d.Lost = append(d.Lost, links.Loss{First: int(l.First), Last: int(l.Last), Host: l.Host, At: s.heard[i], Why: l.Text})
	}
}

// Site reports whether all hosts of a site are lost.
func (s *survival) Site(x *startup.ClientInfo) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range x.NProcs {
		if !s.losses.HasHostOf(x.FirstProc + wire.WorldRank(i)) {
			return false
		}
	}
	return true
}

func (s *survival) tellLost(l wire.Lost) {
	for _, h := range s.n.hosts {
		h.loop.SendLost(l)
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
	for _, l := range s.losses.All() {
		tellProc(p, l)
	}
}

func tellProc(p *procs.Proc, l wire.Lost) {
	if p.Phase() == ending.InMPI {
		_ = p.Send(wireup.Message{Kind: wireup.KindFailed, Peer: l.First, Last: l.Last, Code: int(l.Status), Reason: l.Text}) // it may have ended
	}
}
