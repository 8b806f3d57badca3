package node

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/openimpi/impi/core/blame"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/node/ending"
	"github.com/openimpi/impi/internal/node/procs"
	"github.com/openimpi/impi/internal/wireup"
)

// spawnID is how a proc calls what it has spawned.
type spawnID struct {
	by      *procs.Proc
	request uint64
}

// spawn starts procs for one of ours, or gives up those that it could not connect
// with.
func (m *meetings) spawn(p *procs.Proc, x *wireup.Meeting) {
	if x.Cancel {
		if o := m.spawnedBy(p, x.Request); o != nil && o.ask((*dynamic.Spawned).Orphan) {
			o.end(endedBy("its parents could not connect with it"))
		}
		return
	}
	work := func() {
		codes, r := m.startWorld(p, x)
		answer := wireup.Message{Kind: wireup.KindSpawned, Meeting: &wireup.Meeting{Request: x.Request, Codes: codes}}
		if r != nil {
			answer.Reason, answer.Meeting.Class = r.Reason, int(mpierr.Spawn)
		}
		m.answer(p, answer)
	}
	if !m.begin(p, work) {
		m.refuse(p, wireup.KindSpawned, x.Request, mpierr.Spawn, "too much of the proc is under way, or the job is ending")
	}
}

// part notes that a proc has no communicator any more with a world that it has
// spawned: from now on the end of one is no matter of the other.
func (m *meetings) part(p *procs.Proc, x *wireup.Meeting) {
	if o := m.spawnedBy(p, x.Request); o != nil {
		o.ask((*dynamic.Spawned).Disconnect)
	}
}

func (m *meetings) spawnedBy(p *procs.Proc, request uint64) *spawnedWorld {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.spawned[spawnID{p, request}]
}

// bear starts a world and waits until its procs are in Init. If that fails, nothing
// is left of it. codes has the error class of each proc that was asked for.
func (m *meetings) startWorld(p *procs.Proc, x *wireup.Meeting) (codes []int, r *refusal) {
	n := m.d.n
	if r := fitToSpawn(m.able(), x); r != nil {
		return nil, r
	}
	o := &spawnedWorld{n: n, by: p, request: x.Request, granted: make([]int, len(x.Spawn.Commands))}
	o.ctx, o.cancel = context.WithCancel(m.d.ctx)
	defer o.cancel()
	if r = o.found(x); r == nil {
		r = o.awaitInit()
	}
	if r != nil {
		n.log.Debug("procs could not be spawned", "world", o.name, "for", p.Who(), "reason", r.Reason)
		o.giveUp(endedBy("it could not be spawned: " + r.Reason))
		return codesOf(x.Spawn, nil, r), r
	}
	n.log.Debug("procs are spawned", "world", o.name, "for", p.Who())
	o.await()
	m.mu.Lock()
	m.spawned[spawnID{p, x.Request}] = o
	if _, open := m.ports.Key(o.port); open {
		m.awaited[o.port] = o
	}
	m.mu.Unlock()
	n.spawning.wg.Go(o.follow)
	return codesOf(x.Spawn, o.granted, nil), nil
}

// fitToSpawn checks what does not depend on places.
func fitToSpawn(able bool, x *wireup.Meeting) *refusal {
	switch {
	case !able:
		return refusing(-1, "the job cannot meet others, nor spawn them: a site of it is run by another MPI, or has no transports for direct links")
	case x.Spawn == nil || len(x.Spawn.Commands) == 0 || len(x.Spawn.Commands) > maxCommands:
		return refusing(-1, "a spawn has 1 to %d commands", maxCommands)
	}
	total := 0
	for i := range x.Spawn.Commands {
		c := &x.Spawn.Commands[i]
		if c.Procs < 1 || c.Procs > maxSpawnProcs {
			return refusing(i, "command %d (%s): %d procs; 1 to %d are possible", i, c.Path, c.Procs, maxSpawnProcs)
		}
		total += c.Procs
	}
	if total > maxSpawnProcs {
		return refusing(-1, "%d procs, at most %d are possible", total, maxSpawnProcs)
	}
	return nil
}

// codesOf has the error class of each proc that was asked for. Where the spawn has
// failed none runs: those of the command that is to blame could not be spawned, the
// others have not been.
func codesOf(s *wireup.Spawn, granted []int, r *refusal) (codes []int) {
	for i := range s.Commands {
		for k := range s.Commands[i].Procs {
			class := mpierr.Success
			switch {
			case r != nil && r.Command >= 0 && r.Command != i:
				class = mpierr.Other
			case r != nil || k >= granted[i]:
				class = mpierr.Spawn
			}
			codes = append(codes, int(class))
		}
	}
	return codes
}

// breakPort tells who waits at the port that spawned procs were to call, or will, that
// they do not.
func (m *meetings) breakPort(o *spawnedWorld, reason string) {
	m.withPorts(func() {
		m.ports.Break(o.by, o.port, errors.New(reason))
		delete(m.spawned, spawnID{o.by, o.request})
	})
}

// endSpawned ends what was spawned here, if the job has failed: all worlds that have
// not parted from their parents.
func (n *node) endSpawned(f *ending.Failure) {
	if n.direct == nil || f == nil {
		return
	}
	m := n.direct.meet
	m.mu.Lock()
	var all []*spawnedWorld
	for _, o := range m.spawned {
		all = append(all, o)
	}
	m.mu.Unlock()
	for _, o := range all {
		if o.ask((*dynamic.Spawned).EndsWithParents) {
			o.end(endedBy("the job of its parents is over: " + f.Text))
		}
	}
}

// goesOn is how long what was spawned may take to end with its parents before the
// operator is told that it has not.
const goesOn = time.Second

// awaitSpawned waits, at a site's own node, for the end of all that was spawned here.
func (n *node) awaitSpawned() {
	if n.opt.share != nil {
		return
	}
	late := time.AfterFunc(goesOn, func() {
		if shares := n.spawning.living(); shares > 0 {
			n.log.Info("the job is over; what it has spawned goes on", "worlds", shares)
		}
	})
	defer late.Stop()
	n.spawning.wg.Wait()
}

// inherit is for a failure of procs that this job's have spawned and are connected
// with: it is the job's own. If the job is over, it is that of the one that has
// spawned it, if there is one.
func (n *node) inherit(f *ending.Failure, late bool) {
	_, gone := n.end.Late(f)
	switch s := n.opt.share; {
	case !gone && !late:
		n.end.Fail(f)
	case gone && s != nil && s.of != nil && s.of.is(dynamic.SpawnConnected):
		s.of.n.inherit(f, late)
	}
}

// endedBy is the failure of a world that somebody ends.
func endedBy(text string) *ending.Failure {
	return &ending.Failure{Text: text, Status: 1, Weight: blame.Decided}
}

// anyProcs tells whether any of the numbers is one.
func anyProcs(granted []int) bool {
	return slices.ContainsFunc(granted, func(n int) bool { return n > 0 })
}
