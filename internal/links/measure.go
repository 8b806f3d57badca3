package links

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"time"
)

// probing is one measurement, for all pairs with the same two hosts and transport.
type probing struct {
	dir         string // of the node that is to dial
	host        int    // from which
	address     string // address to dial
	local, peer int
	transport   string
	found       []**Speed // where to store the result
}

// MeasureAll makes the nodes measure the transports that the pairs use, and if all is set also
// those that they could use. The measurements run one after the other, so that they do not disturb
// each other, until limit has passed. A transport between two hosts is measured once. Measurements
// that were not made have a Problem.
func MeasureAll(ctx context.Context, jobs []Job, found []FoundNode, limit time.Duration, all bool) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	deadline, _ := ctx.Deadline()
	todo := probings(jobs, found, all)
	for i, t := range todo {
		// Most measurements need much less than their share; one that hangs must not use up the
		// time.
		share := time.Until(deadline)
		if i < len(todo)-1 {
			share = max(share/time.Duration(len(todo)-i), min(share, limit/2))
		}
		s := t.run(ctx, share)
		for _, to := range t.found {
			*to = s.over(*to)
		}
	}
}

// over combines a measurement with an earlier one, which counts if the new one has failed.
func (s *Speed) over(old *Speed) *Speed {
	if s.Problem == "" || old == nil {
		return s
	}
	kept := *old
	kept.Problem = s.Problem
	return &kept
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

// probings lists what to measure: first the link of each pair, by the node that dialled it
// or, if that did not answer, by the other; then the other possible transports.
func probings(jobs []Job, found []FoundNode, all bool) (todo []probing) {
	add := func(t probing, to **Speed) {
		same := slices.IndexFunc(todo, func(u probing) bool {
			return t.dir == u.dir && t.host == u.host && t.transport == u.transport && t.address == u.address
		})
		if same < 0 {
			same = len(todo)
			todo = append(todo, t)
		}
		todo[same].found = append(todo[same].found, to)
	}
	for i := range jobs {
		dirs := jobs[i].dirs(found)
		for k := range jobs[i].Pairs {
			if p := &jobs[i].Pairs[k]; p.State == StateLinked {
				if t, ok := p.probing(dirs); ok {
					add(t, &p.Speed)
				}
			}
		}
		for k := range jobs[i].Pairs {
			if all {
				jobs[i].Pairs[k].others(dirs, add)
			}
		}
	}
	return todo
}

// dirs returns the run directory of the node by which each rank can be measured: one of its site,
// which answered.
func (j *Job) dirs(found []FoundNode) map[int]string {
	type site struct {
		dir    string
		client int
	}
	dirs, here := make(map[int]string), make(map[site]bool)
	for _, f := range found {
		if !f.Forwarded {
			here[site{f.Dir, f.About.Client}] = true
		}
	}
	for _, f := range found {
		if f.Node != nil && f.About.ID == j.ID && here[site{f.Dir, f.About.Client}] {
			for _, p := range f.Node.Procs {
				dirs[p.Rank] = f.Dir
			}
		}
	}
	return dirs
}

func (p *Pair) probing(dirs map[int]string) (best probing, ok bool) {
	for _, v := range p.Views {
		for _, c := range v.Candidates {
			if c.Transport == p.Transport && c.Address != "" && dirs[v.Local] != "" && (!ok || v.Dialled) {
				best, ok = v.probing(c, dirs), true
			}
		}
	}
	return best, ok
}

// others adds measurements of transports that a pair could use and does not: by the end
// that dialled, or by both if neither did.
func (p *Pair) others(dirs map[int]string, add func(probing, **Speed)) {
	for i := range p.Views {
		v := &p.Views[i]
		if p.Dialler != NoRank && p.Dialler != v.Local && dirs[p.Dialler] != "" {
			continue
		}
		for k := range v.Candidates {
			c := &v.Candidates[k]
			if t := v.probing(*c, dirs); c.Verdict == Possible && c.Address != "" && t.dir != "" {
				add(t, &c.Probe)
			}
		}
	}
}

func (v *View) probing(c Candidate, dirs map[int]string) probing {
	return probing{dir: dirs[v.Local], host: v.LocalHost, address: c.Address, local: v.Local, peer: v.Peer, transport: c.Transport}
}
