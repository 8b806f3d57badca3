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
			n -= here
			var hosts []int
			for here > 0 {
				procs := here
				if g.OneIn(2) {
					procs = g.Between(1, here)
				}
				hosts, here = append(hosts, procs), here-procs
			}
			c.Sites = append(c.Sites, job.Site{Hosts: hosts, Together: len(hosts) == 1 && g.OneIn(3)})
		}
	}
	c.Key, c.Direct, c.Links = g.OneIn(4), true, g.links()
	c.Chunk, c.Boxes = 256<<g.IntN(7), g.OneIn(2)
	// Of a host that others give up, which lives, all would be lost that it takes for lost if it could
	// not read what they have told it before, as with Linux it can.
	c.Links.Channel.Reset = 0
	c.Questions, c.Serves = g.Between(0, 4), g.OneIn(2)
	if g.OneIn(3) {
		c.Stays = time.Millisecond + g.upTo(200*time.Millisecond)
	}
	c.Links.Worlds = g.link(time.Millisecond)
	if g.OneIn(3) {
		c.Links.Worlds.Uneven = g.Between(2, 40)
	}
	if g.OneIn(4) {
		c.Resume = &job.Resume{Window: g.Between(200, 20_000), Again: time.Microsecond + g.upTo(20*time.Millisecond), Limit: 2 * time.Second}
	}
	if s, _ := c.Program.Recover(); s.Unseen || g.limits.NoFaults {
		return
	}
	if c.Resume != nil {
		for range g.Between(1, 3) {
			c.Faults = append(c.Faults, job.Fault{Kind: script.Pick(g.Draws, job.DrainPlugin, job.DrainPlugin, job.UndrainPlugin), Target: g.IntN(64), Event: uint64(g.Between(1, 100<<g.IntN(6)))})
		}
	}
	if c.Stays > 0 && g.IntN(3) > 0 {
		c.Faults = append(c.Faults, job.Fault{Kind: job.CrashNode, Target: g.IntN(64), At: g.upTo(c.Stays), Ending: true})
		if g.OneIn(2) {
			return
		}
	}
	for range g.Between(1, 4) {
		f := job.Fault{
			Kind:   script.Pick(g.Draws, job.CrashProc, job.CrashNode, job.LoseHost, job.LoseHost, job.CutLink, job.CutLink, job.FailLauncher),
			Target: g.IntN(64), Event: uint64(g.Between(1, 100<<g.IntN(7))),
		}
		c.Faults = append(c.Faults, f)
		if f.Kind == job.CutLink && g.OneIn(2) { // perhaps of the link on which the two ask each other
			f.Target, f.Event = g.IntN(64), f.Event+uint64(g.Between(1, 200))
			c.Faults = append(c.Faults, f)
		}
	}
	if g.OneIn(2) {
		c.Resume = g.resumeWorlds(2 * time.Second)
	}
}

var errSurvival = errors.New("of jobs that go on without others procs and nodes crash, and machines are lost, and links between them are cut, and plugins drained, by numbers of events or after the end of a site; they have own sites, no boards and no channels on demand")

func (c *Case) checkSurvival() error {
	for _, f := range c.Faults {
		if f.Event == 0 && !f.Ending || !slices.Contains([]job.FaultKind{job.CrashProc, job.CrashNode, job.LoseHost, job.CutLink, job.FailLauncher, job.DrainPlugin, job.UndrainPlugin}, f.Kind) {
			return fmt.Errorf("%w: fault %v: %w", ErrCase, f, errSurvival)
		}
	}
	if c.Boards || c.OnDemand || slices.ContainsFunc(c.Sites, func(s job.Site) bool { return s.Foreign != nil || s.NoOnDemand }) {
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
			if f.Ending {
				continue
			}
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
	ended := false
	for _, w := range x.worlds {
		job.AtEnd(w, func() {
			for _, f := range x.c.Faults {
				if f.Ending && !ended {
					x.k.After(f.At, func() { x.lose(f, false) })
				}
			}
			ended = true
		})
	}
	x.shared.Die = func(proc int) {
		x.k.After(0, func() { x.lose(job.Fault{Kind: job.CrashProc, Target: proc}, false) })
		x.steps.players[proc].Freeze()
	}
}

func (x *execution) lose(f job.Fault, silent bool) {
	sizes, vanishes := x.c.Program.Worlds, false
	switch f.Kind {
	case job.CutLink:
		x.meeting.CutOne(f.Target)
		return
	case job.CrashNode, job.FailLauncher, job.DrainPlugin, job.UndrainPlugin:
		sizes = []int{len(x.c.sitesOf(0)), len(x.c.sitesOf(1))}
	case job.LoseHost:
		if sizes = []int{machinesOf(x.c.sitesOf(0)), machinesOf(x.c.sitesOf(1))}; sizes[0]+sizes[1] == 0 {
			return
		}
		vanishes = f.Target/(sizes[0]+sizes[1])%2 == 1
	default: // a proc
	}
	w := 0
	if f.Target %= sizes[0] + sizes[1]; f.Target >= sizes[0] {
		w, f.Target = 1, f.Target-sizes[0]
	}
	if vanishes || f.Kind == job.DrainPlugin && f.Target%4 == 0 { // or without a remainder by 4 there would be no other transport
		f.Target += sizes[w]
	}
	if silent {
		x.meeting.Silence(x.worlds[w], f.Target)
	}
	x.worlds[w].InjectFault(f)
}

// machinesOf counts the machines of sites that have several.
func machinesOf(sites []job.Site) (n int) {
	for _, s := range sites {
		if len(s.Hosts) > 1 {
			n += len(s.Hosts)
		}
	}
	return n
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
	"survival faults " + string(job.CrashProc), "survival faults " + string(job.CrashNode), "survival faults " + string(job.LoseHost), "survival faults " + string(job.CutLink), "survival faults " + string(job.FailLauncher),
	"survival links resumed", "questions over channels answered", "questions over channels in parts",
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
	c.if1("questions over channels answered", r.Questions().Answered > 0)
	c.if1("questions over channels in parts", r.Questions().Long > 0)
	for kind := range r.Faults() {
		c["survival faults "+string(kind)]++
	}
	c.if1("survival of worlds lost unseen", s.Unseen)
	c.if1("survival of silent sites", s.Silent)
	c.if1("survival of partings", s.Parts)
	shrunk := slices.ContainsFunc(x.records, func(rec *script.Record) bool { return len(rec.Said) > 1 })
	c.if1("survival shrinks", shrunk)
}
