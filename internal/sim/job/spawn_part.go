package job

import (
	"cmp"
	"slices"
	"time"

	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/spawn"
)

// part is what one site starts of a spawned world.
type part struct {
	*spawn.Placed
	of      *spawned
	at      *site // a site of a job that existed from the start
	granted []int
	pieces  []spawn.Piece
	site    *site // the site of the spawned world, perhaps shared with the neighbouring parts; nil: it was not started
	procs   int   // how many are in MPI
	ended   bool
}

// local reports whether the part is at the site that spawns.
func (p *part) local() bool { return p.at == homeOf(p.of.parents) }

func (p *part) leaving() bool {
	if p.local() && p.of.State() == spawn.Disconnected {
		return true
	}
	return p.site != nil && slices.ContainsFunc(p.site.procs, func(x *proc) bool { return x.fini })
}

// tell runs f at the node that spawns, or at another one that has a part of the world.
func (p *part) tell(f func()) {
	if p.local() {
		f()
		return
	}
	p.of.a.after(2*time.Millisecond, f)
}

// reserve is what the part's site does: it grants slots, or says why not.
func (p *part) reserve(answer func(spawn.Reply)) {
	r := p.Part.Check()
	if r == nil && p.at.left && !p.local() {
		r = spawn.Refuse(-1, "site %d is ending", p.at.rank)
	}
	wish, problem := spawn.NewSlotRequest(p.Commands, p.hosts())
	if r = cmp.Or(r, problem); r != nil {
		answer(spawn.Reply{Refused: r})
		return
	}
	d := p.at.spawner
	d.asked[p] = func(a spawn.SlotAnswer[*part]) {
		p.granted, p.pieces = a.Granted, a.Pieces
		answer(spawn.Reply{Granted: a.Granted, Refused: a.Refused})
	}
	d.withSlots(func(now time.Time) {
		d.slots.Reserve(now, p, wish)
	})
}

// hosts returns the hosts of the site that may start the part.
func (p *part) hosts() (hosts []int) {
	if p.local() {
		return p.Placed.Hosts
	}
	for i := range p.at.hosts {
		if p.Host == "" && (i == 0 || p.at.machines != nil) || p.Host == address(p.at.rank, i).Addr().String() {
			hosts = append(hosts, i)
		}
	}
	return hosts
}

// parts are the parts of a spawned world that one of its sites has.
type parts []*part

// procOf returns the part of a proc of the site, and its command among all of the spawn.
func (all parts) procOf(local int) (p *part, command int) {
	for _, p := range all {
		for i := range p.pieces {
			for c, n := range p.pieces[i].Procs {
				if local < n {
					return p, p.Commands[c].Number
				}
				local -= n
			}
		}
	}
	panic("job: a proc of no command")
}

// inMPI counts one more proc of the part that is in MPI.
func (p *part) inMPI() {
	if p.procs++; p.procs < total(p.granted) {
		return
	}
	p.tell(func() {
		if p.of.InInit() {
			p.of.started()
		}
	})
}

// end gives back the part's slots, or ends what was started.
func (p *part) end(why string) {
	switch {
	case p.site == nil:
		p.at.spawner.withSlots(func(time.Time) { p.at.spawner.slots.Release(p) })
	case !p.site.left:
		p.site.fail(ending.Ended(why))
	}
}

// gone records that nothing is left of the part.
func (p *part) gone() {
	if p.ended {
		return
	}
	p.ended = true
	w, d := p.of, p.at.spawner
	w.a.after(200*time.Microsecond, func() {
		d.running = slices.DeleteFunc(d.running, func(x *part) bool { return x == p })
		d.withSlots(func(time.Time) { d.slots.Release(p) })
		p.tell(func() {
			w.refuse(spawn.Refuse(-1, "%s: %v", w.name, p.site.err))
			w.answerRefused()
			w.check()
		})
	})
}
