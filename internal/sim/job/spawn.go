package job

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/core/spawn"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/sim/kernel"
	"github.com/openimpi/impi/internal/wireup"
)

// spawner is shared by the node of a site and the nodes of spawned worlds there.
type spawner struct {
	k       *kernel.Kernel
	slots   spawn.Slots[*part]
	asked   map[*part]func(spawn.SlotAnswer[*part])
	running []*part
	changed func() // called when the number of procs may have changed; may be nil
}

type parents struct {
	worlds spawn.Worlds[*proc]
	of     []*spawned // worlds that are being started, or have not ended
}

type spawned struct {
	spawn.SpawnedWorld[*proc]
	*spawn.Transaction
	a        *Worlds
	parents  *site
	port     string
	name     string
	parts    []*part      // by index in the transaction's Parts
	taken    []*spareLink // links to spare sites
	world    *Simulation  // nil: it was not started
	answered bool
	over     bool // nothing is left of the spawned world
}

// homeOf returns the site in whose node a spawned site's node runs, and whose slots it uses: a site
// of a job that was not spawned.
func homeOf(s *site) *site {
	if len(s.parts) > 0 {
		return s.parts[0].at
	}
	return s
}

func (h *host) machine() int {
	n := h.number
	for _, p := range h.s.parts {
		if n < len(p.hostParts) {
			return p.hostParts[n].Host
		}
		n -= len(p.hostParts)
	}
	return h.number
}

// hostPartOf returns the number of the host part of p that the host of a spawned world runs, or -1.
func hostPartOf(h *host, p *part) int {
	n := h.number
	for _, q := range h.s.parts {
		if q == p && n >= 0 && n < len(q.hostParts) {
			return n
		}
		n -= len(q.hostParts)
	}
	return -1
}

func newSpawner(w *Simulation, rank int, slots int) *spawner {
	d := &spawner{k: w.k, asked: make(map[*part]func(spawn.SlotAnswer[*part]))}
	d.slots = spawn.Slots[*part]{Site: siteName(rank), Total: slots, Procs: w.cfg.Sites[rank].Hosts, Leaving: (*part).leaving}
	return d
}

func siteName(rank int) string { return fmt.Sprintf("s%d", rank) }

func (d *spawner) withSlots(f func(now time.Time)) {
	now := epoch.Add(d.k.Now())
	f(now)
	for a, ok := d.slots.Next(); ok; a, ok = d.slots.Next() {
		answer := d.asked[a.Part]
		delete(d.asked, a.Part)
		answer(a)
	}
	if at, ok := d.slots.Deadline(); ok {
		d.k.After(at.Sub(now), func() { d.withSlots(d.slots.Tick) })
	}
	if d.changed != nil {
		d.changed()
	}
}

// after runs f some time later, and keeps the simulation going until then.
func (a *Worlds) after(most time.Duration, f func()) {
	a.busy++
	a.k.After(a.k.Between(0, most), func() {
		a.busy--
		f()
	})
}

func (a *Worlds) spawn(p *proc, x *wireup.OtherWorld) {
	s := p.s
	var commands []spawn.Command
	for i, c := range x.Spawn.Commands {
		commands = append(commands, spawn.Command{Number: i, Path: c.Path, Args: c.Args, Procs: c.Procs, Info: c.Info})
	}
	w := &spawned{Transaction: spawn.NewTransaction(commands), a: a, parents: s, port: x.Port}
	w.Spawner, w.Request = p, x.Request
	s.parents.of = append(s.parents.of, w)
	a.busy++
	var plan []*spawn.PlacedPart
	r := spawn.Check(s.job.AllOwn, commands)
	if r == nil {
		plan, r = w.plan()
	}
	if r != nil {
		w.refuse(r)
		return
	}
	w.SetPlan(plan)
	w.reserve()
}

func (w *spawned) plan() ([]*spawn.PlacedPart, *spawn.Refusal) {
	port, err := dynamic.ParsePort(w.port)
	if err != nil {
		return nil, spawn.Refuse(-1, "the procs have no port to connect to: %v", err)
	}
	w.a.spawns++
	w.Port, w.name = port.Name(), fmt.Sprintf("spawn%d", w.a.spawns)
	home := homeOf(w.parents)
	j := spawn.Job{Self: home.rank, SpawnerHost: w.Spawner.h.machine(), Names: []string{"here"}, Spread: home.machines != nil}
	if home.rank == spareRank {
		j.Self, j.Sites = 0, []spawn.Site{placeOf(home)}
		return j.Plan(w.name, w.Commands)
	}
	for _, s := range home.w.sites {
		j.Sites = append(j.Sites, placeOf(s))
	}
	for _, x := range home.spareLinks.List() {
		j.Spares = append(j.Spares, x.Site)
	}
	return j.Plan(w.name, w.Commands)
}

// reserve gets slots for the parts, one after the other, and then begins all of them.
func (w *spawned) reserve() {
	placed, ok := w.Next()
	if !ok {
		if w.Refusal() == nil {
			w.begin()
		}
		return
	}
	p := &part{PlacedPart: placed, of: w}
	if placed.Client == spawn.NoClient {
		w.askSpare(p)
		return
	}
	if p.at = homeOf(w.parents); p.at.rank != spareRank {
		p.at = p.at.w.sites[placed.Client]
	}
	w.ask(p)
}

func (w *spawned) ask(p *part) {
	placed := p.PlacedPart
	p.tell(func() {
		p.reserve(func(a spawn.Reply) {
			p.tell(func() {
				switch {
				case w.Answered(placed, a):
					w.parts = append(w.parts, p)
				case a.Refused == nil:
					p.end("nobody needs it")
				default:
					w.refuse(a.Refused)
				}
				w.reserve()
			})
		})
	})
}

func (w *spawned) begin() {
	if r := w.Begin(); r != nil {
		w.refuse(r)
		return
	}
	var sites []Site
	for _, p := range w.parts {
		if int(p.NewClient) == len(sites) {
			sites = append(sites, Site{Params: p.at.cfg.Params})
		}
		s := &sites[p.NewClient]
		if p.misplaced() && w.parents.w.wrong == nil {
			w.parents.w.wrong = fmt.Errorf("%w: %s: site %d starts the procs for host %s on %v", ErrDisorder, w.name, p.at.rank, p.Host, p.hostParts)
		}
		for i := range p.hostParts {
			s.Hosts = append(s.Hosts, total(p.hostParts[i].Procs))
		}
	}
	cfg, err := w.a.cfg.Spawn(w.Commands[0].Path, sites)
	if err == nil {
		w.world, err = New(w.a.k, *cfg)
	}
	if err != nil {
		w.refuse(w.Commands[0].Refuse(err.Error()))
		return
	}
	w.world.spawned = w
	if cfg.Started != nil {
		cfg.Started(w.world)
	}
	for _, p := range w.parts {
		p.site = w.world.sites[p.NewClient]
		p.site.parts, p.site.spawner = append(p.site.parts, p), p.at.spawner
		p.at.spawner.running = append(p.at.spawner.running, p)
	}
	for _, p := range w.parts {
		if p.at.dead && p.at.rank == spareRank { // the spare site has crashed since it gave the slots
			p.site.crash()
		}
	}
}

func total(procs []int) (n int) {
	for _, k := range procs {
		n += k
	}
	return n
}

func (w *spawned) started() {
	_, open := w.Spawner.h.meets.Ports.Key(w.Port)
	s := w.parents
	s.parents.worlds.Started(s.w.time(), &w.SpawnedWorld, s.w.cfg.Limit, open)
	s.awaitConnecting()
	w.a.Counts.Spawned++
	w.answer()
}

func (s *site) awaitConnecting() {
	if at, ok := s.parents.worlds.Deadline(); ok {
		s.w.k.After(at.Sub(s.w.time()), func() {
			s.endSpawned(s.parents.worlds.Tick(s.w.time()), "the time is over to connect with its parents")
			s.awaitConnecting()
		})
	}
}

func (s *site) endSpawned(worlds []*spawn.SpawnedWorld[*proc], why string) {
	for _, w := range slices.Clone(s.parents.of) {
		if slices.Contains(worlds, &w.SpawnedWorld) {
			w.end(why)
		}
	}
}

// end ends what was started.
func (w *spawned) end(why string) {
	here := 0
	for _, p := range w.parts {
		if p.local() {
			here++
		}
		if spawn.TellsPart(p.local(), p.inInit) {
			p.tell(func() { p.end(why) })
		}
	}
	if spawn.EndsServer(here) && w.world != nil && !w.world.server.ended {
		w.world.server.crash()
	}
}

func (w *spawned) refuse(r *spawn.Refusal) {
	if !w.Refuse(r) {
		return
	}
	w.parents.parents.worlds.NotStarted(&w.SpawnedWorld)
	w.a.Counts.Unspawned++
	w.end("it could not be spawned: " + r.Reason)
	w.answerRefused()
}

// answerRefused answers the proc once nothing of the world is left at its site.
func (w *spawned) answerRefused() {
	if w.Refusal() == nil || w.answered || slices.ContainsFunc(w.parts, func(p *part) bool { return p.local() && p.site != nil && !p.ended }) {
		return
	}
	w.answer()
	w.check()
}

func (w *spawned) answer() {
	w.answered = true
	w.a.busy--
	for _, l := range w.taken {
		l.close("its spawn is over")
	}
	m := wireup.Message{Kind: wireup.KindSpawned, Meeting: &wireup.OtherWorld{Request: w.Request, Codes: w.Codes()}}
	if r := w.Refusal(); r != nil {
		m.Reason, m.Meeting.Class = r.Reason, int(mpierr.Spawn)
	}
	w.a.tell(w.Spawner, m, nil)
}

func (w *spawned) check() {
	if w.over || w.world == nil && w.Refusal() == nil || w.world != nil && !w.world.Over() {
		return
	}
	w.over = true
	s := w.parents
	s.parents.of = slices.DeleteFunc(s.parents.of, func(x *spawned) bool { return x == w })
	if w.Refusal() != nil {
		return
	}
	text, o := "", w.outcome()
	if o.Failure != nil {
		text = o.Failure.Text
	}
	w.judge(o)
	end := s.parents.worlds.Ended(&w.SpawnedWorld, text, false)
	if end.Fails {
		o.Failure = ending.SpawnedFailed(w.name, fmt.Sprintf("rank %d", w.Spawner.rank), o.Failure)
		s.inherit(o)
	}
	w.a.with(w.Spawner.h, func(n *meetingNode) { n.Break(w.Spawner, w.Port, errors.New(w.name+": "+end.Reason)) })
}

// judge checks that the node which has spawned the world knows of a failure that it or the world's
// server has met.
func (w *spawned) judge(o ending.Outcome) {
	fails, own := w.world.server.err != nil, false
	for _, p := range w.parts {
		if f := p.site.outcome.Failure; p.local() && f != nil {
			fails, own = true, own || !f.Remote
		}
	}
	if failed := o.Failure != nil; w.world.wrong == nil && (failed != fails || own && o.Failure.Remote) {
		w.world.wrong = fmt.Errorf("%w: %s fails: %t, by its own site: %t, and to its parents its failure is %v", ErrDisorder, w.name, fails, own, o.Failure)
	}
}

func (w *spawned) outcome() ending.Outcome {
	var parts []ending.Outcome
	for _, p := range w.parts {
		if p.local() && ending.AwaitsPart(parts) {
			parts = append(parts, p.site.outcome)
		}
	}
	var server *ending.Failure
	if err := w.world.server.err; err != nil {
		server = ending.ServerFailure(err, false, func(c wire.ClientRank) string { return fmt.Sprintf("site %d", c) })
	}
	return ending.WorldOutcome(parts, server, w.parents.w.cfg.Survive)
}

func (s *site) inherit(o ending.Outcome) {
	passOn := false
	if !s.dead {
		passOn = s.end.Inherit(s.w.time(), o)
		s.report(func(time.Time) {})
	}
	if passOn && len(s.parts) > 0 && s.parts[0].state().PassesOn() {
		s.parts[0].of.parents.inherit(o)
	}
}

func (s *site) parentsFailed() {
	for _, w := range slices.Clone(s.parents.of) {
		w.refuse(spawn.Refuse(-1, "the job of the parents is ending"))
	}
	s.endSpawned(s.parents.worlds.ParentsFailed(), "the job of its parents is over")
}

// spawnHeard handles a proc's message about procs that it spawns. It returns false for other
// messages.
func (a *Worlds) spawnHeard(p *proc, m *wireup.Message) bool {
	switch x, s := m.Meeting, p.s; {
	case m.Kind == wireup.KindSpawn && x.Cancel:
		if w := s.parents.worlds.Cancel(p, x.Request); w != nil {
			s.endSpawned([]*spawn.SpawnedWorld[*proc]{w}, "its parents could not connect with it")
		}
	case m.Kind == wireup.KindSpawn:
		a.spawn(p, x)
	case m.Kind == wireup.KindDisconnect:
		s.parents.worlds.Disconnect(p, x.Request)
	default:
		return false
	}
	return true
}
