package job

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/wireup"
)

var errSurvive = errors.New("a job that survives its procs has own sites of one host, all channels from the start and no boards")

func (c *Config) maySurvive() error {
	if !c.Survive {
		return nil
	}
	for i, s := range c.Sites {
		if len(s.Hosts) != 1 || s.Foreign != nil || s.Older {
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
	x.s.w.k.After(ending.Longest, func() {
		if !x.losses.Has(peer) && !x.losses.Has(p.rank) {
			report()
		}
	})
}

func (x *survival) hostDied(host wire.HostRank, f *ending.Failure) {
	s := x.s
	h := s.job.Hosts[host]
	if f.Weight != ending.Lost {
		if !x.losses.Has(h.FirstProc) {
			s.fail(f)
		}
		return
	}
	s.hosts[0].sw.GoOnWithout(host, f)
	x.lose(wire.Lost{First: h.FirstProc, Last: h.FirstProc + wire.WorldRank(h.NProcs) - 1, Host: true, Status: uint32(f.Status), Text: f.Text})
}

var errGivenUp = errors.New("another host has lost it, and the job goes on without it")

// lose tells everybody whom the site can reach that procs are lost, unless it is known.
func (x *survival) lose(l wire.Lost) {
	s := x.s
	if s.left || s.dead {
		return
	}
	news, h := x.losses.Take(l), s.hosts[0]
	if len(news) == 0 {
		return
	}
	s.w.k.Note("site %d goes on without ranks %d to %d: %s", s.rank, l.First, l.Last, l.Text)
	for _, part := range news {
		h.sw.TellLost(part)
		for _, p := range s.procs {
			switch is := part.First <= p.rank && p.rank <= part.Last; {
			case is && l.Host:
				s.fail(ending.ToldBy("the other sites go on without this one: " + l.Text))
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
		h.sw.GoOnWithout(s.job.Procs.At(l.First).Host, errGivenUp)
	}
	s.end.Late(&ending.Failure{Text: l.Text, Status: cmp.Or(int(l.Status), ending.StatusRemote), Weight: ending.Died})
}
