package job

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/sim/kernel"
	"github.com/openimpi/impi/internal/wireup"
)

var errSurvive = errors.New("a job that survives its procs has own sites, all channels from the start and no boards")

var errTogether = errors.New("the procs that a launcher starts together are on one host")

var errServes = errors.New("a server in the node of another MPI")

func (c *Config) maySurvive() error {
	if c.Serves && c.Sites[0].Foreign != nil {
		return errServes
	}
	if !c.Survive {
		return nil
	}
	for i, s := range c.Sites {
		if s.Together && len(s.Hosts) > 1 {
			return fmt.Errorf("%w: site %d", errTogether, i)
		}
		if s.Foreign != nil || s.NoOnDemand {
			return fmt.Errorf("%w: site %d", errSurvive, i)
		}
	}
	if c.Boards || c.OnDemand {
		return errSurvive
	}
	return nil
}

// serves reports whether the site's node runs the job's server.
func serves(s *site) bool { return s.w.cfg.Serves && s.rank == 0 }

// ownServerFailure returns the failure by which the server that runs in the site's node has ended,
// if that is the site's failure, too.
func ownServerFailure(s *site) *ending.Failure {
	if !serves(s) || !s.w.server.ended || s.w.server.err == nil {
		return nil
	}
	f := ending.ServerFailure(s.w.server.err, s.job != nil, nameOfClient)
	if ending.OutlivesOwnServer(survives(s.w), f) {
		return nil
	}
	return f
}

// ownServerEnded is the failure of the server as seen by the node that it runs in, which also waits
// for it when its site has finished.
func ownServerEnded(w *Simulation) {
	s := w.sites[0]
	switch f := ownServerFailure(s); {
	case f == nil:
	case s.finished:
		s.finished, s.err = false, fmt.Errorf("%w: site %d: %w", ErrFailed, s.rank, f)
	default:
		s.fail(f)
	}
}

func survives(w *Simulation) bool { return w.cfg.Survive && w.ready() }

// survival drives the machine that decides what the node of a host does about lost procs. The hosts
// of a site have one node only if it is one host.
type survival struct {
	h     *host
	on    bool // the job goes on without what is lost
	rules ending.Survival
}

// begin has the job go on without what is lost from now on.
func (x *survival) begin() {
	h := x.h
	if x.on = h.s.w.cfg.Survive; !x.on {
		return
	}
	x.rules.Begin(ending.SurvivalNode{Job: h.s.job, FirstHost: h.rank, NHosts: 1, Together: h.s.cfg.Together, Name: func() string { return nameOf(h) }})
	if m := h.s.machines; m != nil {
		m.tree.SurviveLosses(h.number)
	}
}

// nameOf names the host as others see it.
func nameOf(h *host) string {
	if h.s.machines == nil {
		return fmt.Sprintf("site %d", h.s.rank)
	}
	return fmt.Sprintf("machine %d of site %d", h.number, h.s.rank)
}

// procLost has the job go on without a proc of the host that has ended in MPI.
func (x *survival) procLost(p *proc, exit ending.Exit) {
	e := &x.h.s.end
	f := e.ProcLost(p.standing(), exit)
	x.act(x.rules.ProcEnded(x.h.s.w.time(), p.rank, fmt.Sprintf("rank %d", p.rank), f, e.Failing() || x.over()))
}

// unlinked gives the site time to hear that one of two procs is lost whose link has broken.
func (x *survival) unlinked(p *proc, peer wire.WorldRank, report func()) {
	x.h.s.w.k.After(ending.MaxHoldTime, func() {
		if !x.rules.LinkExplained(p.rank, peer) {
			report()
		}
	})
}

// failLauncher has the launcher of a site's procs fail, which ends them.
func failLauncher(w *Simulation, f Fault) {
	all := slices.DeleteFunc(slices.Clone(w.sites), func(s *site) bool { return !s.cfg.Together || s.done })
	if len(all) == 0 {
		return
	}
	s := all[f.Target%len(all)]
	w.hit(f, fmt.Sprintf("the launcher of site %d", s.rank), !survives(w))
	endTogether(s)
	w.k.After(w.k.Between(0, time.Millisecond), func() {
		x, why := &s.hosts[0].survival, ending.NodeFailed(errors.New("the launcher of its procs has failed"))
		if !x.on || s.end.Failing() || x.over() {
			s.fail(why)
			return
		}
		x.act(x.rules.LauncherFailed(w.time(), why))
	})
}

// endTogether ends all procs of a site soon, as their launcher does when it has lost one.
func endTogether(s *site) {
	for _, p := range s.procs {
		s.w.k.After(s.w.k.Between(0, time.Millisecond), p.crash)
	}
}

func (x *survival) hostDied(host wire.HostRank, f *ending.Failure) {
	if !x.over() {
		x.act(x.rules.ChannelLost(x.h.s.w.time(), host, f))
	}
}

// lose handles what another host has said of lost procs.
func (x *survival) lose(l wire.Lost) {
	if !x.over() {
		x.act(x.rules.Lost(x.h.s.w.time(), l))
	}
}

// loseHosts handles the loss of hosts of this site.
func (x *survival) loseHosts(hosts []int, f *ending.Failure) {
	if !x.over() {
		x.act(x.rules.HostsLost(x.h.s.w.time(), hosts, f))
	}
}

// over reports whether the host's node ends. The other hosts of a site whose head has died have yet
// to notice that.
func (x *survival) over() bool {
	s := x.h.s
	return x.h.gone || s.done || s.left && (s.machines == nil || !s.dead)
}

func (x *survival) act(steps []ending.LossStep) {
	h, k := x.h, x.h.s.w.k
	for _, step := range steps {
		switch step.Action {
		case ending.WarnOfLoss:
			k.Tracef("%s goes on without ranks %d to %d: %s", nameOf(h), step.Lost.First, step.Lost.Last, step.Lost.Text)
		case ending.TellLoss:
			h.sw.SendLost(step.Lost)
			x.tellProcs(step.Lost)
		case ending.ProcGone:
			h.sw.ProcDone(step.Rank)
		case ending.HostGone:
			h.sw.ContinueWithout(step.Host, step.Err)
		case ending.NoteLoss:
			h.s.end.ReportLate(step.Failure)
		case ending.Excluded:
			excluded(h, step.Failure)
		case ending.LossEndsJob:
			h.s.fail(step.Failure)
		}
	}
}

func (x *survival) tellProcs(l wire.Lost) {
	k := x.h.s.w.k
	for _, p := range x.h.s.procs {
		if p.h != x.h || p.fini || x.rules.Has(p.rank) {
			continue
		}
		p.news = max(p.news+1, k.Now()+k.Between(0, notice))
		k.After(p.news-k.Now(), func() {
			p.give(wireup.Message{Kind: wireup.KindFailed, Peer: l.First, Last: l.Last, Code: int(l.Status), Reason: l.Text}, nil)
		})
	}
}

// excluded ends a host without which the others go on, and its site with it if it is the head.
func excluded(h *host, f *ending.Failure) {
	s := h.s
	s.w.k.Tracef("%s ends: %v", nameOf(h), f)
	if h.number == 0 {
		s.spared = true
		s.fail(f)
		return
	}
	endSoon(h, f)
}

// worldLink is a link between worlds.
type worldLink struct {
	l  *kernel.Link
	of []*proc // those at its ends; nil: it is that of a call of a port
	// resumes means that another one takes its place when it breaks.
	resumes bool
}

// between returns the links that are in use between procs of worlds that have met.
func (a *Worlds) between() []worldLink {
	return slices.DeleteFunc(slices.Clone(a.links), func(x worldLink) bool { return x.of == nil || x.l.Over() })
}

// CutOne cuts one of the links between procs of different worlds, if there is one. The proc of the
// world with the greater name may be lost by it, unless the link is resumed.
func (a *Worlds) CutOne(target int) {
	all := a.between()
	if len(all) == 0 {
		return
	}
	x := all[target%len(all)]
	if a.Counts.Cut++; x.resumes {
		a.k.Tracef("cut of %s", x.l.Name())
		x.l.Cut(errors.New("it was cut"))
		return
	}
	loser := x.of[0]
	if x.of[1].member().Compare(loser.member()) > 0 {
		loser = x.of[1]
	}
	loser.unlinked = true
	loser.s.w.hit(Fault{Kind: CutLink, Target: target}, x.l.Name(), false)
	x.l.Cut(errors.New("it was cut"))
}

// forever is longer than any run.
const forever = 1000 * time.Hour

// Silence has nothing be heard any more of the links of a site's procs to other worlds, but for one
// of each proc.
func (a *Worlds) Silence(w *Simulation, site int) {
	s, one := w.sites[site%len(w.sites)], make(map[*proc]bool)
	for _, x := range a.between() {
		for _, p := range x.of {
			if p.s == s && one[p] {
				a.k.Tracef("silence of %s", x.l.Name())
				x.l.Stall(forever)
			}
			one[p] = true
		}
	}
}

// Left reports for each proc of a job that goes on without others whether it has come to its end.
func (r Result) Left() []bool {
	left := make([]bool, len(r.World.procs))
	for i, p := range r.World.procs {
		left[i] = p != nil && !p.lost()
	}
	return left
}

// lost reports whether the others may go on without the proc: it, its site, or its host or one
// above that was lost, or it has given way to a proc of another world, after their link was cut.
func (p *proc) lost() bool {
	return p.crashed || p.s.dead || p.h.lost || p.s.cfg.Together && p.s.spared || p.unlinked && p.err == nil && !p.fini
}

// misreported checks that a site whose job has gone on without procs ends with that as its failure.
func misreported(s *site) error {
	ranks := make(map[wire.WorldRank]bool)
	for _, l := range s.hosts[0].survival.rules.All() {
		for r := l.First; r <= l.Last; r++ {
			ranks[r] = true
		}
	}
	lost, o := len(ranks), s.outcome
	if reported := o.Failure != nil && o.Late && o.Failure.Lost == lost && o.Failure.Status != 0; lost > 0 && !reported || lost == 0 && o.Failure != nil && o.Failure.Lost > 0 {
		return fmt.Errorf("site %d has gone on without %d procs, and ends with %+v", s.rank, lost, o)
	}
	return nil
}

// Unfinished says who of those that are left in a job that goes on without others has not ended in
// order.
func (r Result) Unfinished() (err error) {
	for _, s := range r.World.sites {
		lost := slices.ContainsFunc(s.procs, func(p *proc) bool { return p.crashed && !p.fini })
		switch {
		case s.cfg.Together && lost && s.finished:
			err = errors.Join(err, fmt.Errorf("site %d has finished without a proc, with which its launcher has lost all", s.rank))
		case s.cfg.Together && s.spared:
		case !s.dead && !s.finished:
			err = errors.Join(err, fmt.Errorf("site %d has not finished: %w", s.rank, s.err))
		}
		if s.finished {
			err = errors.Join(err, misreported(s))
		}
	}
	for _, p := range r.World.procs {
		switch {
		case p == nil || p.lost():
		case p.err != nil:
			err = errors.Join(err, fmt.Errorf("rank %d: %w", p.rank, p.err))
		case !p.fini:
			err = errors.Join(err, fmt.Errorf("rank %d has ended before Finalize", p.rank))
		}
	}
	return err
}
