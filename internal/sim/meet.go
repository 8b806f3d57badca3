package sim

import (
	"cmp"
	"fmt"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/names"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/sim/job"
	"github.com/openimpi/impi/internal/sim/kernel"
	"github.com/openimpi/impi/internal/sim/script"
)

func (x *execution) meet() {
	s := &steps{x: x, at: map[int]int{}, players: map[int]player{}}
	x.steps = s
	x.meeting = job.NewWorlds(x.k, job.WorldsConfig{Link: x.c.Links.Worlds, Backlog: x.c.Backlog, DialFail: x.c.DialFail, Resume: x.c.Resume, Names: names.Limits{Scope: x.c.Names, Total: 2 * x.c.Names}, Calls: s, Spawn: x.spawned})
	d, death := x.c.Program.Death()
	if !death {
		return
	}
	world, victim := d.Victim(x.c.Program)
	s.reached = func(proc, step int) {
		if proc != victim || step != d.At || x.shared.Doomed {
			return
		}
		x.shared.Doomed = true
		x.k.After(d.After, func() { x.kill(world, d.Roots[world], d.Node) })
		if p, ok := s.players[victim]; ok && d.Stopped && step != script.LastStep {
			p.Freeze()
		}
	}
}

func (x *execution) kill(world, root int, node bool) {
	first, side := 0, [...]string{"accept", "connect"}[world]
	for _, n := range x.c.Program.Worlds[:world] {
		first += n
	}
	f := job.Fault{Kind: job.CrashProc, Target: root}
	if node {
		f = job.Fault{Kind: job.CrashNode}
	}
	x.cover[fmt.Sprintf("deaths in step %s %d", side, x.steps.at[first+root])]++
	x.worlds[world].InjectFault(f)
	for i := range x.c.Program.Worlds[world] {
		x.shared.Gone[first+i] = true
	}
	if world == 1 && x.shared.Ports["first"] != "" { // otherwise no proc would connect to a port
		x.shared.Ports["last"] = x.shared.Ports["first"]
	}
}

// steps follows the roots through the steps of connecting: up to the fifth by what their nodes do,
// then by their messages on the temporary link. The tag of those messages is the number of the
// step; the step after a received message is to tell the others of it.
type steps struct {
	x       *execution
	at      map[int]int // step of each proc
	players map[int]player
	reached func(proc, step int) // nil: nothing to call
}

// Step implements job.CallObserver.
func (s *steps) Step(who dynamic.WorldProc, step int) { s.reach(s.procOf(who), step) }

func (s *steps) reach(proc, step int) {
	if proc < 0 {
		return
	}
	s.at[proc] = step
	if s.reached != nil {
		s.reached(proc, step)
	}
}

// Link implements job.CallObserver.
func (s *steps) Link(caller, opener dynamic.WorldProc) kernel.Watcher {
	return &callWatch{s: s, procs: [2]int{s.procOf(caller), s.procOf(opener)}}
}

// procOf returns a proc's number in the program; -1: it has none, as its world was to fail.
func (s *steps) procOf(m dynamic.WorldProc) int {
	first := 0
	for w, world := range s.x.worlds {
		if world != nil && world.Name() == m.World {
			return first + int(m.Rank)
		}
		first += s.x.c.Program.Worlds[w]
	}
	return -1
}

type callWatch struct {
	s     *steps
	procs [2]int
	sent  [2]packets // packets sent, by end
	taken [2]packets // packets received, by end
	wait  [2][]byte  // bytes to be received, by end
}

func endOf(e *kernel.End) int {
	if e == e.Link().Ends[0] {
		return 0
	}
	return 1
}

// Sent implements kernel.Watcher.
func (w *callWatch) Sent(from *kernel.End, data []byte) {
	i := endOf(from)
	w.wait[1-i] = append(w.wait[1-i], data...)
	w.sent[i].add(data, func(tag wire.Tag) {
		switch tag {
		case 0: // the introduction
		case 14:
			w.s.reach(w.procs[i], 13) // step 13 is over
			fallthrough
		default:
			w.s.reach(w.procs[i], int(tag))
		}
	})
}

// Received implements kernel.Watcher.
func (w *callWatch) Received(to *kernel.End, n int) {
	i := endOf(to)
	data := w.wait[i][:n]
	w.wait[i] = w.wait[i][n:]
	w.taken[i].add(data, func(tag wire.Tag) {
		tag = cmp.Or(tag, 5)
		w.s.reach(w.procs[i], int(tag)+1)
	})
}

// Ended implements kernel.Watcher.
func (w *callWatch) Ended(from *kernel.End) { w.s.reach(w.procs[endOf(from)], script.LastStep) }

type packets struct {
	head []byte
	data int // bytes of the packet that have yet to come
}

func (p *packets) add(b []byte, tag func(wire.Tag)) {
	for len(b) > 0 {
		if n := min(p.data, len(b)); n > 0 {
			p.data, b = p.data-n, b[n:]
			continue
		}
		n := min(wire.HeaderSize-len(p.head), len(b))
		p.head, b = append(p.head, b[:n]...), b[n:]
		if len(p.head) < wire.HeaderSize {
			return
		}
		var h wire.Packet
		wire.Dialect(0).Header(p.head, &h)
		p.head = p.head[:0]
		if h.Type.HasData() {
			p.data = int(h.Len)
			tag(h.Tag)
		}
	}
}
