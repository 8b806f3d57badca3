package job

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/sim/kernel"
	"github.com/openimpi/impi/internal/wireup"
)

var errSurvive = errors.New("a job that survives its procs has own sites of one host, all channels from the start and no boards")

func (c *Config) maySurvive() error {
	if !c.Survive {
		return nil
	}
	for i, s := range c.Sites {
		if len(s.Hosts) != 1 || s.Foreign != nil || s.NoOnDemand {
			return fmt.Errorf("%w: site %d", errSurvive, i)
		}
	}
	if c.Boards || c.OnDemand {
		return errSurvive
	}
	return nil
}

func survives(w *World) bool { return w.cfg.Survive && w.ready() }

type survival struct {
	s      *site
	losses ending.Losses
}

// procLost has the job go on without a proc of the site that has ended in MPI.
func (x *survival) procLost(p *proc, exit ending.Exit) {
	l := wire.Lost{First: p.rank, Last: p.rank, Text: fmt.Sprintf("rank %d has left MPI", p.rank)}
	if f := x.s.end.ProcLost(p.standing(), exit); f != nil {
		l.Text, l.Status = f.Text, uint32(f.Status)
	}
	x.lose(l)
}

// unlinked gives the site time to hear that one of two procs is lost whose link has broken.
func (x *survival) unlinked(p *proc, peer wire.WorldRank, report func()) {
	x.s.w.k.After(ending.MaxHoldTime, func() {
		if !x.losses.Has(peer) && !x.losses.Has(p.rank) {
			report()
		}
	})
}

func (x *survival) hostDied(host wire.HostRank, f *ending.Failure) {
	s := x.s
	h := s.job.Hosts[host]
	if f.Precedence != ending.Lost {
		if !x.losses.Has(h.FirstProc) {
			s.fail(f)
		}
		return
	}
	s.hosts[0].sw.ContinueWithout(host, f)
	x.lose(wire.Lost{First: h.FirstProc, Last: h.FirstProc + wire.WorldRank(h.NProcs) - 1, Host: true, Status: uint32(f.Status), Text: f.Text})
}

var errGivenUp = errors.New("another host has lost it, and the job goes on without it")

// lose tells everybody whom the site can reach that procs are lost, unless it is known.
func (x *survival) lose(l wire.Lost) {
	s := x.s
	if s.left || s.dead {
		return
	}
	news, h := x.losses.Add(l), s.hosts[0]
	if len(news) == 0 {
		return
	}
	s.w.k.Tracef("site %d goes on without ranks %d to %d: %s", s.rank, l.First, l.Last, l.Text)
	for _, part := range news {
		h.sw.SendLost(part)
		for _, p := range s.procs {
			switch is := part.First <= p.rank && p.rank <= part.Last; {
			case is && l.Host:
				s.fail(ending.RemoteFailure("the other sites go on without this one: " + l.Text))
				return
			case is:
				h.sw.ProcDone(p.rank)
			case !p.fini && !x.losses.Has(p.rank):
				k := s.w.k
				p.news = max(p.news+1, k.Now()+k.Between(0, notice))
				k.After(p.news-k.Now(), func() {
					p.give(wireup.Message{Kind: wireup.KindFailed, Peer: part.First, Last: part.Last, Code: int(part.Status), Reason: part.Text}, nil)
				})
			}
		}
	}
	if l.Host {
		h.sw.ContinueWithout(s.job.Procs.At(l.First).Host, errGivenUp)
	}
	s.end.ReportLate(&ending.Failure{Text: l.Text, Status: cmp.Or(int(l.Status), ending.StatusRemote), Precedence: ending.Died})
}

// worldLink is a link between worlds.
type worldLink struct {
	l  *kernel.Link
	of []*proc // those at its ends; nil: it is that of a call of a port
}

// between returns the links that are in use between procs of worlds that have met.
func (a *Worlds) between() []worldLink {
	return slices.DeleteFunc(slices.Clone(a.links), func(x worldLink) bool { return x.of == nil || x.l.Over() })
}

// CutOne cuts one of the links between procs of different worlds, if there is one. The proc of the
// world with the greater name may be lost by it.
func (a *Worlds) CutOne(target int) {
	all := a.between()
	if len(all) == 0 {
		return
	}
	x := all[target%len(all)]
	loser := x.of[0]
	if x.of[1].member().Compare(loser.member()) > 0 {
		loser = x.of[1]
	}
	loser.unlinked = true
	loser.s.w.hit(Fault{Kind: CutLink, Target: target}, x.l.Name(), false)
	a.Counts.Cut++
	x.l.Cut(errors.New("it was cut"))
}

// forever is longer than any run.
const forever = 1000 * time.Hour

// Silence has nothing be heard any more of the links of a site's procs to other worlds, but for one
// of each proc.
func (a *Worlds) Silence(w *World, site int) {
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

// lost reports whether the others may go on without the proc: it, or its site, was lost, or it has
// given way to a proc of another world, after their link was cut.
func (p *proc) lost() bool {
	return p.crashed || p.s.dead || p.unlinked && p.err == nil && !p.fini
}

// Unfinished says who of those that are left in a job that goes on without others has not ended in
// order.
func (r Result) Unfinished() (err error) {
	for _, s := range r.World.sites {
		if !s.dead && !s.finished {
			err = errors.Join(err, fmt.Errorf("site %d has not finished: %w", s.rank, s.err))
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
