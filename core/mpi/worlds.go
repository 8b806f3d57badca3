package mpi

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/wireup"
)

// world is a job that this one has met. Its procs are numbered one after the
// other behind those that were there; a number is never used again.
type world struct {
	*dynamic.Description
	first   comm.Proc
	size    int
	clients wire.ClientRank // the first of them
	sites   int
	uses    atomic.Int32          // communicators with members of it
	leaving bool                  // nothing refers to it; guarded by the process's lock
	lost    bool                  // a link to it broke, or could not be had
	spawn   uint64                // how the node calls it, if this proc has spawned it; else 0
	opening map[message.Peer]bool // links that the node was asked for
}

func (w *world) has(p comm.Proc) bool { return p >= w.first && int(p-w.first) < w.size }

// worlds is what a process knows of the procs of all jobs. It is immutable;
// only who has the process's lock replaces it.
type worlds struct {
	clients *comm.Clients
	met     []*world
}

// describeOwn reads how others see this job.
func (p *process) describeOwn() (err error) {
	p.worlds.Store(&worlds{clients: p.roster.clients})
	if len(p.job.World) == 0 || p.job.Dialect == wire.Draft {
		return nil
	}
	if p.description, err = dynamic.ReadDescription(p.job.World); err != nil {
		return err
	}
	if n := p.description.Size(); n != len(p.job.Procs) {
		return fmt.Errorf("%w: a job of %d procs that describes itself as %d", ErrNode, len(p.job.Procs), n)
	}
	return nil
}

// clients says of which site each proc is, of this job or another.
func (p *process) clients() *comm.Clients { return p.worlds.Load().clients }

// stranger tells whether a peer is of another job.
func (p *process) stranger(peer message.Peer) bool { return int(peer) >= p.roster.directory.Len() }

// worldOf gives the world that a stranger is of; nil if there is none any more.
func (p *process) worldOf(proc comm.Proc) *world {
	for _, w := range p.worlds.Load().met {
		if w.has(proc) {
			return w
		}
	}
	return nil
}

// known gives a world that was met and is remembered; nil if there is none. The
// process is locked.
func (p *process) known(name dynamic.World) *world {
	for _, w := range p.worlds.Load().met {
		if w.World == name {
			return w
		}
	}
	return nil
}

// dataOf is how user data travels between this proc and a peer.
func (p *process) dataOf(peer message.Peer) datatype.Representation {
	if int(peer) < len(p.data) {
		return p.data[peer]
	}
	return datatype.Native // meet sees to it
}

// foreignClient tells whether procs of a site run another library. Those that were
// met do not.
func (p *process) foreignClient(client wire.ClientRank) bool {
	return int(client) < len(p.roster.foreign) && p.roster.foreign[client]
}

// member says who a proc is, for those of other worlds.
func (p *process) member(proc comm.Proc) dynamic.Member {
	if !p.stranger(message.Peer(proc)) {
		return dynamic.Member{World: p.description.World, Rank: wire.WorldRank(proc)}
	}
	w := p.worldOf(proc)
	return dynamic.Member{World: w.World, Rank: wire.WorldRank(proc - w.first)}
}

// allows tells whether all procs of a world limit what they keep of messages that nobody has
// asked for.
func allows(d *dynamic.Description) bool {
	return !slices.ContainsFunc(d.Groups, func(g dynamic.Group) bool { return g.Card.Unexpected == 0 })
}

// meet makes a world known, unless it is. The process is locked.
func (p *process) meet(d *dynamic.Description) (*world, error) {
	if w := p.known(d.World); w != nil {
		w.leaving = false
		return w, nil
	}
	if own, theirs := p.description.Groups[0].Card.ByteOrder, d.Groups[0].Card.ByteOrder; own != theirs {
		return nil, fmt.Errorf("%w: its machines are %s endian, those of this job %s endian", ErrAlone, theirs, own)
	}
	l := d.Limits.Least(p.description.Limits)
	first, err := p.eng.AddWorld(message.World{
		Host: wire.HostID(d.World), Size: d.Size(), Self: p.member(comm.Proc(p.job.Rank)).Identity(),
		MaxData: l.DataLen, AckMark: l.AckMark, HiWater: l.HiWater,
		Allows: allows(p.description) && allows(d),
	})
	if err != nil {
		return nil, err
	}
	w := &world{Description: d, first: comm.Proc(first), size: d.Size(), clients: p.freeClients(), opening: map[message.Peer]bool{}}
	counts, clients := make([]int, len(d.Groups)), make([]wire.ClientRank, len(d.Groups))
	sites := map[int]wire.ClientRank{}
	for i := range d.Groups {
		g := &d.Groups[i]
		if _, ok := sites[g.Site]; !ok {
			sites[g.Site] = w.clients + wire.ClientRank(len(sites))
		}
		counts[i], clients[i] = g.Count, sites[g.Site]
	}
	w.sites = len(sites)
	old := p.worlds.Load()
	p.worlds.Store(&worlds{old.clients.With(w.first, counts, clients), append(slices.Clip(old.met), w)})
	p.listenForWords()
	p.takeEarly()
	return w, nil
}

// freeClients is a number from which on no site is numbered.
func (p *process) freeClients() (n wire.ClientRank) {
	n = wire.ClientRank(len(p.roster.foreign))
	for _, w := range p.worlds.Load().met {
		n = max(n, w.clients+wire.ClientRank(w.sites))
	}
	return n
}

// worldsOf gives the worlds other than one's own that members of groups are of.
func (p *process) worldsOf(groups ...*comm.Group) (met []*world) {
	all := p.worlds.Load().met
	if len(all) == 0 {
		return nil
	}
	for _, g := range groups {
		if g == nil {
			continue
		}
		for proc := range g.All() {
			if w := p.worldOf(proc); w != nil && !slices.Contains(met, w) {
				met = append(met, w)
			}
		}
	}
	return met
}

// use counts a communicator for each of the worlds that its members are of.
func (p *process) use(c *comm.Comm, n int32) []*world {
	met := p.worldsOf(c.Group(), c.Remote())
	for _, w := range met {
		w.uses.Add(n)
	}
	return met
}

// doubt notes that worlds may be over, where a communicator with members of them has
// failed because somebody has died.
func (p *process) doubt(met []*world, why error) {
	if errors.Is(why, message.ErrPeerDown) || errors.Is(why, ErrPeerGone) || errors.Is(why, ErrUnreachable) {
		p.lock()
		for _, w := range met {
			w.lost = true
		}
		p.unlock()
	}
}

// endPort ends our side of a link.
func (p *process) endPort(q *port) {
	q.ended = true
	if err := q.Link.CloseSend(); err != nil {
		q.Drop(err)
	}
}

// forget takes a world out of the tables once it is left and has no links, nor will
// have any.
func (p *process) forget(w *world) {
	old := p.worlds.Load()
	if !w.leaving || p.meetings > 0 || len(w.opening) > 0 || !slices.Contains(old.met, w) {
		return
	}
	for _, q := range p.ports {
		if q != nil && w.has(comm.Proc(q.peer)) {
			return
		}
	}
	p.eng.ForgetWorld(message.Peer(w.first))
	met := slices.DeleteFunc(slices.Clone(old.met), func(x *world) bool { return x == w })
	p.worlds.Store(&worlds{old.clients.Without(w.first, w.first+comm.Proc(w.size)), met})
}

// procOf is what the job, or another one, says of a proc.
func (p *process) procOf(proc comm.Proc) *wireup.Proc {
	if !p.stranger(message.Peer(proc)) {
		return &p.job.Procs[proc]
	}
	return &wireup.Proc{Client: p.clients().Of(proc), Path: wireup.PathDirect}
}
