package links

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"time"
)

// probing is one measurement that stands for all pairs of the same two hosts
// and transport.
type probing struct {
	dir         string // of the node that is to dial
	local, peer int
	transport   string
	pairs       []*Pair
}

// MeasureAll has the nodes measure the transports that the pairs use, one after
// the other so that they do not disturb each other, until limit has passed. A
// transport between two hosts is measured once. Pairs that it did not come to
// say so.
func MeasureAll(ctx context.Context, jobs []Job, found []Found, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	todo := probings(jobs, found)
	for i, t := range todo {
		deadline, _ := ctx.Deadline()
		share := time.Until(deadline) / time.Duration(len(todo)-i)
		if len(todo)-i > 1 { // most take much less than their share
			share = max(share, min(time.Until(deadline), limit/2))
		}
		s := t.run(ctx, share)
		for _, p := range t.pairs {
			p.Speed = s
		}
	}
}

func (t *probing) run(ctx context.Context, share time.Duration) *Speed {
	s := &Speed{How: HowProbe}
	ctx, cancel := context.WithTimeout(ctx, share)
	defer cancel()
	a, err := Ask(ctx, filepath.Join(t.dir, SocketName), Request{Op: OpProbe, Local: t.local, Peer: t.peer, Transport: t.transport})
	switch {
	case errors.Is(err, ErrSilent):
		s.Problem = "not measured: no answer in time"
	case err != nil:
		s.Problem = "not measured: " + err.Error()
	case a.Measure == nil:
		s.Problem = "not measured: the node said nothing"
	default:
		s.Measure = *a.Measure
	}
	return s
}

// probings lists what is to be measured: of each pair that has a link, by the
// node that dialled it, or else by whichever can.
func probings(jobs []Job, found []Found) (todo []probing) {
	for i := range jobs {
		for k := range jobs[i].Pairs {
			p := &jobs[i].Pairs[k]
			if p.Transport == "" || p.State != StateLinked {
				continue
			}
			t, ok := jobs[i].probing(p, found)
			if !ok {
				continue
			}
			same := slices.IndexFunc(todo, func(u probing) bool { return u.same(t, found) })
			if same >= 0 {
				todo[same].pairs = append(todo[same].pairs, p)
				continue
			}
			todo = append(todo, t)
		}
	}
	return todo
}

func (j *Job) probing(p *Pair, found []Found) (probing, bool) {
	best := -1
	for i, v := range p.Views {
		can := slices.ContainsFunc(v.Candidates, func(c Candidate) bool { return c.Transport == p.Transport && c.Address != "" })
		if can && (best < 0 || v.Dialled) {
			best = i
		}
	}
	if best < 0 {
		return probing{}, false
	}
	v := p.Views[best]
	for _, f := range found {
		if f.Node != nil && f.About.ID == j.ID && slices.ContainsFunc(f.Node.Procs, func(x Proc) bool { return x.Rank == v.Local }) {
			return probing{dir: f.Dir, local: v.Local, peer: v.Peer, transport: p.Transport, pairs: []*Pair{p}}, true
		}
	}
	return probing{}, false
}

// same tells whether one measurement stands for both.
func (t *probing) same(u probing, found []Found) bool {
	return t.dir == u.dir && t.transport == u.transport &&
		t.address() == u.address() && t.host(found) == u.host(found)
}

// address is where the probe dials.
func (t *probing) address() string {
	for _, v := range t.pairs[0].Views {
		for _, c := range v.Candidates {
			if v.Local == t.local && c.Transport == t.transport {
				return c.Address
			}
		}
	}
	return ""
}

// host is the agent's that the dialling proc belongs to.
func (t *probing) host(found []Found) int {
	for _, f := range found {
		if f.Dir != t.dir || f.Node == nil {
			continue
		}
		for _, p := range f.Node.Procs {
			if p.Rank == t.local {
				return p.Host
			}
		}
	}
	return -1
}
