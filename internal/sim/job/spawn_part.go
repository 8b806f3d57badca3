package job

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/spawn"
	"github.com/openimpi/impi/core/wire"
)

type part struct {
	*spawn.PlacedPart
	of        *spawned
	at        *site // a site of a job that existed from the start
	granted   []int
	hostParts []spawn.HostPart
	site      *site // the site of the spawned world, perhaps shared with the neighbouring parts; nil: it was not started
	procs     int   // number of procs in MPI
	inInit    bool  // the node that spawns knows that all are
	ended     bool
}

func (p *part) local() bool { return p.at == homeOf(p.of.parents) }

// leaving is what the head of the part's site knows.
func (p *part) leaving() bool {
	var here []bool
	for i := range p.hostParts {
		if p.at.machines == nil || p.hostParts[i].Host == 0 {
			here = append(here, p.state().Leaving(p.site != nil && p.finished(i)))
		}
	}
	return spawn.MayLeave(here, !p.local() || p.at.machines == nil || p.of.Spawner.h.machine() == 0)
}

// finished reports whether some procs of one of the part's host parts have.
func (p *part) finished(hostPart int) bool {
	return slices.ContainsFunc(p.site.procs, func(x *proc) bool { return x.fini && hostPartOf(x.h, p) == hostPart })
}

// state returns the state of the part's world, which only the node knows that has spawned it.
func (p *part) state() (s spawn.State) {
	if p.local() {
		s = p.of.State()
	}
	return s
}

// tell runs f at the node that spawns, or at another one that has a part of the world.
func (p *part) tell(f func()) {
	if p.local() {
		f()
		return
	}
	p.of.a.after(2*time.Millisecond, f)
}

func (p *part) reserve(answer func(spawn.Reply)) {
	if p.at.job == nil && p.at.rank != spareRank && !p.at.left { // it has yet to hear what its job is, and accepts nobody
		p.of.a.after(retry, func() { p.reserve(answer) })
		return
	}
	r := p.Part.Check()
	if r == nil && p.at.left && !p.local() {
		r = spawn.Refuse(-1, "site %d is ending", p.at.rank)
	}
	if r == nil && !p.local() && p.at.job != nil {
		from := homeOf(p.of.parents).hosts[p.of.Spawner.h.machine()]
		if v := p.judge(from, Encrypted); v != dynamic.NotAllowed {
			disorder(p.at.w, "site %d is asked for a part by a transport that its route does not have, and says %v", p.at.rank, v)
		}
		if v := p.judge(from, Plain); v != dynamic.Accepted {
			r = spawn.Refuse(-1, "site %d does not take requests of host %d: %v", p.at.rank, from.rank, v)
		}
	}
	hosts, unknown := p.hosts()
	wish, problem := spawn.NewSlotRequest(p.Commands, hosts)
	if r = cmp.Or(r, unknown, problem); r == nil {
		r = wish.At(siteName(int(p.at.rank)), len(p.at.hosts), func(h int) bool { return !p.at.hosts[h].gone }, strconv.Itoa)
	}
	if r != nil {
		answer(spawn.Reply{Refused: r})
		return
	}
	d := p.at.spawner
	d.asked[p] = func(a spawn.SlotAnswer[*part]) {
		p.granted, p.hostParts = a.Granted, a.HostParts
		answer(spawn.Reply{Granted: a.Granted, Refused: a.Refused})
	}
	d.withSlots(func(now time.Time) {
		d.slots.Reserve(now, p, wish)
	})
}

// judge returns what the site of the part answers a host that asks by a transport. Sites of jobs that
// meet have a route of Plain alone.
func (p *part) judge(from *host, transport string) dynamic.Verdict {
	return spawn.Judge(p.at.job, from.rank, func(first wire.WorldRank) bool {
		i := slices.IndexFunc(from.s.procs, func(x *proc) bool { return x.h == from })
		if from.s.procs[i].rank != first {
			disorder(p.at.w, "host %d asks for a part, and the route of rank %d counts", from.rank, first)
		}
		return transport == Plain
	})
}

func (p *part) hosts() ([]int, *spawn.Refusal) {
	if p.local() {
		return p.PlacedPart.Hosts, nil
	}
	site := placeOf(p.at)
	return site.HostsFor(&p.Part, p.at.machines != nil)
}

// misplaced reports whether procs of a part at another site are to run on another host than it
// names.
func (p *part) misplaced() bool {
	return !p.local() && p.Host != "" && slices.ContainsFunc(p.hostParts, func(x spawn.HostPart) bool {
		return address(p.at.rank, x.Host).Addr().String() != p.Host
	})
}

// placeOf describes a site that existed from the start as a place for spawned procs.
func placeOf(s *site) spawn.Site {
	x := spawn.Site{Name: siteName(int(s.rank))}
	for i := range s.hosts {
		x.Hosts = append(x.Hosts, spawn.Host{Addresses: []netip.Addr{address(s.rank, i).Addr()}})
	}
	return x
}

// parts are the parts of a spawned world that one of its sites has.
type parts []*part

// procOf returns the part of a proc of the site, and its command among all of the spawn.
func (all parts) procOf(local int) (p *part, command int) {
	for _, p := range all {
		for i := range p.hostParts {
			for c, n := range p.hostParts[i].Procs {
				if local < n {
					return p, p.Commands[c].Number
				}
				local -= n
			}
		}
	}
	panic("job: a proc of no command")
}

func (p *part) inMPI() {
	if p.procs++; p.procs < total(p.granted) {
		return
	}
	p.tell(func() {
		p.inInit = true
		if p.of.PartInInit() {
			p.of.started()
		}
	})
}

func (p *part) end(why string) {
	switch {
	case p.site == nil:
		p.at.spawner.withSlots(func(time.Time) { p.at.spawner.slots.Release(p) })
	case !p.local() && p.procs == total(p.granted): // it has told the spawning node, and listens to the server alone
	case !p.site.left:
		p.site.fail(ending.EndedByParents(why))
	}
}

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
