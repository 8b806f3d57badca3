package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/openimpi/impi/internal/sim/job"
	"github.com/openimpi/impi/internal/sim/script"
)

// survivors draws two jobs that meet and go on without lost procs. Events of faults are counted
// from when all have met; their procs and sites are counted over both worlds, and a cut is one of a
// link between them.
func (g *generator) survivors(c *Case) {
	c.Program = script.GenerateRecover(g.T, g.limits.Procs)
	for _, n := range c.Program.Worlds {
		for n > 0 {
			here := g.Between(1, n)
			c.Sites, n = append(c.Sites, job.Site{Hosts: []int{here}}), n-here
		}
	}
	c.Key, c.Direct, c.Links = g.OneIn(4), true, g.links()
	c.Chunk, c.Boxes = 256<<g.IntN(7), g.OneIn(2)
	c.Links.Worlds = g.link(time.Millisecond)
	if g.OneIn(3) {
		c.Links.Worlds.Uneven = g.Between(2, 40)
	}
	if s, _ := c.Program.Recover(); s.Unseen || g.limits.NoFaults {
		return
	}
	for range g.Between(1, 4) {
		f := job.Fault{
			Kind:   script.Pick(g.Draws, job.CrashProc, job.CrashNode, job.CutLink, job.CutLink),
			Target: g.IntN(64), Event: uint64(g.Between(1, 100<<g.IntN(7))),
		}
		c.Faults = append(c.Faults, f)
		if f.Kind == job.CutLink && g.OneIn(2) { // perhaps of the link on which the two ask each other
			f.Target, f.Event = g.IntN(64), f.Event+uint64(g.Between(1, 200))
			c.Faults = append(c.Faults, f)
		}
	}
}

var errSurvival = errors.New("of jobs that go on without others procs and nodes crash, and links between them are cut, by numbers of events; they have own sites of one host, no boards, no channels on demand and no resumed links")

func (c *Case) checkSurvival() error {
	for _, f := range c.Faults {
		if f.Event == 0 || f.Kind != job.CrashProc && f.Kind != job.CrashNode && f.Kind != job.CutLink {
			return fmt.Errorf("%w: fault %v: %w", ErrCase, f, errSurvival)
		}
	}
	if c.Resume != nil || c.Boards || c.OnDemand || slices.ContainsFunc(c.Sites, func(s job.Site) bool { return s.Foreign != nil || s.NoOnDemand || len(s.Hosts) > 1 }) {
		return fmt.Errorf("%w: %w", ErrCase, errSurvival)
	}
	return nil
}

// survive has faults come once all procs have met.
func (x *execution) survive() {
	s, _ := x.c.Program.Recover()
	met := 0
	x.shared.Met = func() {
		if met++; met < x.c.Procs() {
			return
		}
		for _, f := range x.c.Faults {
			x.k.AtEvent(x.k.Events()+f.Event, func() { x.lose(f, s.Silent) })
		}
		if s.Unseen {
			first := len(x.c.sitesOf(0))
			x.k.After(time.Second, func() { // all wait then
				for i := range x.c.sitesOf(1) {
					x.lose(job.Fault{Kind: job.CrashNode, Target: first + i}, s.Silent)
				}
			})
		}
	}
	x.shared.Die = func(proc int) {
		x.k.After(0, func() { x.lose(job.Fault{Kind: job.CrashProc, Target: proc}, false) })
		x.steps.players[proc].Freeze()
	}
}

func (x *execution) lose(f job.Fault, silent bool) {
	sizes := x.c.Program.Worlds
	switch f.Kind {
	case job.CutLink:
		x.meeting.CutOne(f.Target)
		return
	case job.CrashNode:
		sizes = []int{len(x.c.sitesOf(0)), len(x.c.sitesOf(1))}
	default: // a proc
	}
	w := 0
	if f.Target %= sizes[0] + sizes[1]; f.Target >= sizes[0] {
		w, f.Target = 1, f.Target-sizes[0]
	}
	if silent {
		x.meeting.Silence(x.worlds[w], f.Target)
	}
	x.worlds[w].InjectFault(f)
}

// recovered judges jobs that go on without lost procs: those that are left have ended in order,
// with the same results.
func (x *execution) recovered(all []job.Result) *Failure {
	var left []bool
	for w, r := range all {
		switch err := r.Unfinished(); {
		case r.Err != nil:
			return x.broken(fmt.Errorf("%s%w", x.inWorld(w), r.Err))
		case err != nil:
			return failure("survivors", fmt.Errorf("%s%w", x.inWorld(w), err))
		}
		left = append(left, r.Left()...)
	}
	if err := script.Agreed(x.records, left); err != nil {
		return failure("result", err)
	}
	if err := script.Verify(x.c.Program, x.records); err != nil {
		return failure(oracle(err), err)
	}
	return nil
}

// SurviveCounters lists what is counted where jobs go on without lost procs.
var SurviveCounters = []string{
	"survival procs left", "survival procs lost", "survival shrinks",
	"survival faults " + string(job.CrashProc), "survival faults " + string(job.CrashNode), "survival faults " + string(job.CutLink),
	"survival of worlds lost unseen", "survival of silent sites", "survival of partings",
}

func (c Coverage) survival(x *execution, r job.Result) {
	s, survives := x.c.Program.Recover()
	if !survives {
		return
	}
	for _, left := range r.Left() {
		c.if1("survival procs left", left)
		c.if1("survival procs lost", !left)
	}
	for kind := range r.Faults() {
		c["survival faults "+string(kind)]++
	}
	c.if1("survival of worlds lost unseen", s.Unseen)
	c.if1("survival of silent sites", s.Silent)
	c.if1("survival of partings", s.Parts)
	shrunk := slices.ContainsFunc(x.records, func(rec *script.Record) bool { return len(rec.Said) > 1 })
	c.if1("survival shrinks", shrunk)
}
