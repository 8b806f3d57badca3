package spawner

import (
	"context"
	"sync"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/core/spawn"
	"github.com/openimpi/impi/internal/connmgr/meet"
	"github.com/openimpi/impi/internal/lifetime"
	"github.com/openimpi/impi/internal/procs"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/wireup"
)

// Parents holds the worlds that the procs of one node have spawned.
type Parents struct {
	spawner *Spawner
	meet    *meet.Meetings

	// Inherit is called with the failure of a world that they have spawned and are connected with,
	// which is a failure of their own job.
	Inherit func(ending.Outcome)

	Spawning Spawning // may be nil

	mu     sync.Mutex
	worlds spawn.Worlds[*procs.Proc]
	of     map[*spawn.SpawnedWorld[*procs.Proc]]*world // worlds that were started and have not ended
	alarm  lifetime.Alarm                              // at the worlds' deadline
}

// Spawning is called when a proc spawns. The function that it returns is called when the procs of
// the world are in Init, or with the reason why they are not.
type Spawning func(by *procs.Proc, commands []spawn.Command) func(world string, r *spawn.Refusal)

// NewParents makes the parents of a node that meets other worlds by m.
func (d *Spawner) NewParents(m *meet.Meetings, inherit func(ending.Outcome)) *Parents {
	s := &Parents{spawner: d, meet: m, Inherit: inherit, of: make(map[*spawn.SpawnedWorld[*procs.Proc]]*world)}
	m.PortClosed = func(port dynamic.WorldID) { s.withWorlds(func() { s.worlds.PortClosed(port) }) }
	return s
}

func (s *Parents) withWorlds(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	at, ok := s.worlds.Deadline()
	s.alarm.Set(at, ok, s.tick)
}

func (s *Parents) tick() {
	s.end(func() []*spawn.SpawnedWorld[*procs.Proc] { return s.worlds.Tick(time.Now()) }, func(w *world) *ending.Failure {
		return ending.TimedOut("%v passed before %s and its parents had connected", s.limit(), w.name)
	})
}

func (s *Parents) limit() time.Duration { return routes.CurrentLimits(s.spawner.Routes).Start }

func (s *Parents) end(which func() []*spawn.SpawnedWorld[*procs.Proc], why func(*world) *ending.Failure) {
	var all []*world
	s.withWorlds(func() {
		for _, x := range which() {
			all = append(all, s.of[x])
		}
	})
	for _, w := range all {
		w.end(why(w))
	}
}

// Failed handles a failure of the parents' job. The worlds that they have spawned end with it,
// except those from which they have disconnected.
func (s *Parents) Failed(f *ending.Failure) {
	s.end(s.worlds.ParentsFailed, func(*world) *ending.Failure {
		return ending.EndedByParents("the job of its parents is over: " + f.Text)
	})
}

// ProcEnded handles the end of a proc.
func (s *Parents) ProcEnded(p *procs.Proc) {
	s.withWorlds(func() { s.worlds.ProcEnded(p) })
}

// HandleMessage handles a message of a proc. It returns false for a message that is not about
// spawned procs.
func (s *Parents) HandleMessage(p *procs.Proc, x wireup.Message) bool {
	switch {
	case x.Meeting == nil:
		return false
	case x.Kind == wireup.KindSpawn && x.Meeting.Cancel:
		s.cancel(p, x.Meeting.Request)
	case x.Kind == wireup.KindSpawn:
		s.spawn(p, x.Meeting)
	case x.Kind == wireup.KindDisconnect:
		s.withWorlds(func() { s.worlds.Disconnect(p, x.Meeting.Request) })
	default:
		return false
	}
	return true
}

func (s *Parents) cancel(p *procs.Proc, request uint64) {
	which := func() (list []*spawn.SpawnedWorld[*procs.Proc]) {
		if w := s.worlds.Cancel(p, request); w != nil {
			list = append(list, w)
		}
		return list
	}
	s.end(which, func(*world) *ending.Failure { return ending.EndedByParents("its parents could not connect with it") })
}

func (s *Parents) spawn(p *procs.Proc, x *wireup.OtherWorld) {
	work := func() {
		var commands []spawn.Command
		if x.Spawn != nil {
			for i, c := range x.Spawn.Commands {
				commands = append(commands, spawn.Command{Number: i, Path: c.Path, Args: c.Args, Procs: c.Procs, Info: c.Info})
			}
		}
		spawned := func(string, *spawn.Refusal) {}
		if s.Spawning != nil {
			spawned = s.Spawning(p, commands)
		}
		world := ""
		answer := wireup.Message{Kind: wireup.KindSpawned, Meeting: &wireup.OtherWorld{Request: x.Request}}
		t := spawn.NewTransaction(commands)
		if r := spawn.Check(s.meet.Able, commands); r != nil {
			t.Refuse(r)
		} else {
			world = s.startWorld(p, x, t)
		}
		spawned(world, t.Refusal())
		answer.Meeting.Codes = t.Codes()
		if r := t.Refusal(); r != nil {
			answer.Reason, answer.Meeting.Class = r.Reason, int(mpierr.Spawn)
		}
		s.meet.Answer(p, answer)
	}
	s.meet.BeginFor(p, wireup.KindSpawned, x.Request, mpierr.Spawn, work)
}

// startWorld starts a world and waits until its procs are in Init. If the transaction is refused,
// nothing is left of it. It returns the world's name.
func (s *Parents) startWorld(p *procs.Proc, x *wireup.OtherWorld, t *spawn.Transaction) string {
	w := &world{Transaction: t, parents: s}
	w.Spawner, w.Request = p, x.Request
	w.ctx, w.cancel = context.WithCancel(s.meet.Ctx)
	defer w.cancel()
	r := w.start(x.Port)
	if r == nil {
		r = w.awaitInit()
	}
	log := s.meet.Log
	if r != nil {
		t.Refuse(r)
		log.Debug("procs could not be spawned", "world", w.name, "for", p.ID(), "reason", r.Reason)
		s.withWorlds(func() { s.worlds.NotStarted(&w.SpawnedWorld) })
		w.giveUp(ending.EndedByParents("it could not be spawned: " + r.Reason))
		return w.name
	}
	log.Debug("procs are spawned", "world", w.name, "for", p.ID())
	open := s.meet.PortIsOpen(w.Port)
	s.withWorlds(func() {
		s.of[&w.SpawnedWorld] = w
		s.worlds.Started(time.Now(), &w.SpawnedWorld, s.limit(), open)
	})
	s.spawner.tasks.Go(func() { s.follow(w) })
	return w.name
}

func (s *Parents) follow(w *world) {
	o := w.awaitEnd()
	f := o.Failure
	text := ""
	if f != nil {
		text = f.Text
	}
	var end spawn.End
	s.withWorlds(func() {
		end = s.worlds.Ended(&w.SpawnedWorld, text, s.spawner.tasks.Err() != nil)
		delete(s.of, &w.SpawnedWorld)
	})
	log := s.meet.Log
	switch {
	case end.TooEarly:
		log.Debug("a spawned world has ended too early", "world", w.name, "reason", end.Reason)
	case end.Fails:
		o.Failure = ending.SpawnedFailed(w.name, w.Spawner.ID().String(), f)
		s.Inherit(o)
	case end.ReportOnly:
		log.Warn("a spawned world that had disconnected from its parents has failed", "world", w.name, "problem", f.Text)
	}
	s.meet.BreakPort(w.Spawner, w.Port, w.name+": "+end.Reason)
}
