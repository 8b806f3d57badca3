package proc

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

// ConnectedWorld is another job with which this one is connected. Its procs get the next numbers of
// the process's table of procs, in a row; no number is used again.
type ConnectedWorld struct {
	*dynamic.Description
	First   comm.Proc
	Members int
	clients wire.ClientRank // the first number of its sites in this process
	sites   int
	Uses    atomic.Int32          // number of communicators that have members of it
	Leaving bool                  // no communicator has members of it any more; guarded by the process's lock
	lost    bool                  // a link to it has broken, or could not be made
	Spawn   uint64                // the node's number of the world, if this proc has spawned it; else 0
	opening map[message.Peer]bool // links that the node is making
}

func (w *ConnectedWorld) has(p comm.Proc) bool { return p >= w.First && int(p-w.First) < w.Members }

// worldTable has the procs of all jobs that a process knows. It is immutable; it is replaced as a
// whole, under the process's lock.
type worldTable struct {
	clients *comm.Clients
	Met     []*ConnectedWorld
}

type worlds struct {
	p              *Process
	Description    *dynamic.Description // of this job, without groups: see Own; nil: it cannot connect to others
	Table          atomic.Pointer[worldTable]
	Early          []LinkMessage                  // links from worlds that are not known yet
	meetings       int                            // number of meetings under way
	Remotes        map[message.Peer]Remote        // procs at the other ends of temporary links, by their peers in core/message
	TemporaryLinks uint32                         // number of temporary links made
	Introduced     map[message.Peer]*FirstMessage // first messages of Remotes
}

// describeOwn reads what this proc itself needs of the description that other worlds get of this
// job. The rest, which has the business card of each host, stays in the memory that the procs of a
// host share until the job meets another one.
func (ws *worlds) describeOwn() (err error) {
	ws.Table.Store(&worldTable{clients: ws.p.Members.clients})
	if len(ws.p.Job.World) == 0 || ws.p.Job.Dialect == wire.Draft {
		return nil
	}
	ws.Description, err = dynamic.ReadDescriptionHead(ws.p.Job.World)
	return err
}

// Own returns the full description of this job. The result is not kept.
func (ws *worlds) Own() (*dynamic.Description, error) {
	d, err := dynamic.ReadDescription(ws.p.Job.Describe())
	if err != nil {
		return nil, err
	}
	if n := d.Size(); n != ws.p.Job.Size() {
		return nil, fmt.Errorf("%w: a job of %d procs that describes itself as %d", ErrNode, ws.p.Job.Size(), n)
	}
	return d, nil
}

// Clients returns the site of each proc, of this job or another.
func (ws *worlds) Clients() *comm.Clients { return ws.Table.Load().clients }

// Foreign reports whether a peer is of another job.
func (ws *worlds) Foreign(peer message.Peer) bool { return int(peer) >= ws.p.Members.directory.Len() }

// WorldOf returns the world of a proc of another job, or nil if the world is not known any more.
func (ws *worlds) WorldOf(proc comm.Proc) *ConnectedWorld {
	for _, w := range ws.Table.Load().Met {
		if w.has(proc) {
			return w
		}
	}
	return nil
}

// Known returns a world by its name, or nil if it is not known. The process is locked.
func (ws *worlds) Known(name dynamic.WorldID) *ConnectedWorld {
	for _, w := range ws.Table.Load().Met {
		if w.World == name {
			return w
		}
	}
	return nil
}

// DataOf returns the representation in which user data is sent between this proc and a peer, except
// for messages of the program, whose doubles may be rounded: see messagesOf.
func (cv *conversion) DataOf(peer message.Peer) datatype.Representation {
	return cv.messagesOf(peer).Exact()
}

func (cv *conversion) messagesOf(peer message.Peer) datatype.Representation {
	if int(peer) < cv.data.size() {
		return cv.data.At(int(peer))
	}
	return datatype.Native // checked in a meeting
}

// ForeignClient reports whether procs of a site run another library. Those of other jobs do not.
func (ws *worlds) ForeignClient(client wire.ClientRank) bool {
	return int(client) < len(ws.p.Members.foreign) && ws.p.Members.foreign[client]
}

// SomeForeign reports whether there are procs that run another library.
func (ws *worlds) SomeForeign() bool { return slices.Contains(ws.p.Members.foreign, true) }

// Member returns the identification of a proc in other worlds.
func (ws *worlds) Member(proc comm.Proc) dynamic.WorldProc {
	if !ws.Foreign(message.Peer(proc)) {
		return dynamic.WorldProc{World: ws.Description.World, Rank: wire.WorldRank(proc)}
	}
	w := ws.WorldOf(proc)
	return dynamic.WorldProc{World: w.World, Rank: wire.WorldRank(proc - w.First)}
}

// allows reports whether all procs of a world limit the unexpected messages that they keep, and so
// know of allowances.
func allows(d *dynamic.Description) bool {
	return !slices.ContainsFunc(d.Groups, func(g dynamic.Group) bool { return g.Card.Unexpected == 0 })
}

// Register registers a world, if it is new. The process is locked.
func (ws *worlds) Register(d *dynamic.Description) (*ConnectedWorld, error) {
	if w := ws.Known(d.World); w != nil {
		w.Leaving = false
		return w, nil
	}
	own, err := ws.Own()
	if err != nil {
		return nil, err
	}
	if own, theirs := own.Groups[0].Card.ByteOrder, d.Groups[0].Card.ByteOrder; own != theirs {
		return nil, fmt.Errorf("%w: its machines are %s endian, those of this job %s endian", ErrAlone, theirs, own)
	}
	l := d.Limits.Least(own.Limits)
	first, err := ws.p.Eng.AddWorld(message.ConnectedWorld{
		Host: wire.HostID(d.World), Size: d.Size(), Self: ws.Member(comm.Proc(ws.p.Job.Rank)).Identity(),
		MaxData: l.DataLen, AckMark: l.AckMark, HiWater: l.HiWater,
		Allows: allows(own) && allows(d),
	})
	if err != nil {
		return nil, err
	}
	w := &ConnectedWorld{Description: d, First: comm.Proc(first), Members: d.Size(), clients: ws.freeClients(), opening: map[message.Peer]bool{}}
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
	old := ws.Table.Load()
	ws.Table.Store(&worldTable{old.clients.With(w.First, counts, clients), append(slices.Clip(old.Met), w)})
	ws.p.Disconnects.listen()
	ws.takeEarly()
	return w, nil
}

// freeClients returns the first number that no site has.
func (ws *worlds) freeClients() (n wire.ClientRank) {
	n = wire.ClientRank(len(ws.p.Members.foreign))
	for _, w := range ws.Table.Load().Met {
		n = max(n, w.clients+wire.ClientRank(w.sites))
	}
	return n
}

// WorldsOf returns the worlds of members of groups, without this one.
func (ws *worlds) WorldsOf(groups ...*comm.Group) (met []*ConnectedWorld) {
	all := ws.Table.Load().Met
	if len(all) == 0 {
		return nil
	}
	for _, g := range groups {
		if g == nil {
			continue
		}
		for proc := range g.All() {
			if w := ws.WorldOf(proc); w != nil && !slices.Contains(met, w) {
				met = append(met, w)
			}
		}
	}
	return met
}

// Use adds n to the number of communicators for each world that members of c belong to, and returns
// these worlds.
func (ws *worlds) Use(c *comm.Comm, n int32) []*ConnectedWorld {
	met := ws.WorldsOf(c.Group(), c.Remote())
	for _, w := range met {
		w.Uses.Add(n)
	}
	return met
}

// MarkLost marks worlds as lost if why, an error of a communicator with members of them, means that
// a proc has died, and the worlds do not continue without it.
func (ws *worlds) MarkLost(met []*ConnectedWorld, why error) {
	if errors.Is(why, message.ErrPeerDown) || errors.Is(why, ErrPeerGone) || errors.Is(why, ErrUnreachable) {
		ws.p.Lock()
		for _, w := range met {
			w.lost = w.lost || !ws.p.Survival.outlives(w)
		}
		ws.p.Unlock()
	}
}

// CloseSend ends our side of a link.
func (q *Endpoint) CloseSend() {
	q.ended = true
	if err := q.Link.CloseSend(); err != nil {
		q.Drop(err)
	}
}

// forget removes a world from the tables once it is left, and has no links and will have none.
func (ws *worlds) forget(w *ConnectedWorld) {
	old := ws.Table.Load()
	if !w.Leaving || ws.meetings > 0 || len(w.opening) > 0 || !slices.Contains(old.Met, w) {
		return
	}
	for _, q := range ws.p.Endpoints.List {
		if q != nil && w.has(comm.Proc(q.Peer)) {
			return
		}
	}
	if ws.p.lifeChecks.asks(w) {
		return
	}
	ws.p.Eng.ForgetWorld(message.Peer(w.First))
	met := slices.DeleteFunc(slices.Clone(old.Met), func(x *ConnectedWorld) bool { return x == w })
	ws.Table.Store(&worldTable{old.clients.Without(w.First, w.First+comm.Proc(w.Members)), met})
}

// ProcOf returns the description of a proc of this job or of another one.
func (ws *worlds) ProcOf(proc comm.Proc) wireup.Proc {
	if !ws.Foreign(message.Peer(proc)) {
		return ws.p.Job.Proc(wire.WorldRank(proc))
	}
	return wireup.Proc{Client: ws.Clients().Of(proc), Path: wireup.PathDirect}
}

// common returns the limits that hold in all jobs that members of c are of; nil if all are of this
// job.
func (ws *worlds) common(c *comm.Comm) *dynamic.Limits {
	met := ws.WorldsOf(c.Group(), c.Remote())
	if len(met) == 0 {
		return nil
	}
	l := ws.Description.Limits
	for _, w := range met {
		l = l.Least(w.Limits)
	}
	return &l
}

// Wide reports whether some members of c are of other jobs.
func (c *Comm) Wide() bool { return c.common != nil }

// TagUB returns MPI_TAG_UB of c, the largest tag that all members accept (MPI-4.1, 9.1.2).
func (c *Comm) TagUB() int {
	if c.common != nil {
		return int(c.common.TagUB)
	}
	return int(c.p.Job.TagUB)
}

// CollectiveLimits returns XSIZE and MAXLINEAR for c (IMPI ch.4, Collective crossovers), which are
// the same at all members.
func (c *Comm) CollectiveLimits() (xsize, maxLinear int) {
	if c.common != nil {
		return int(c.common.XSize), int(c.common.MaxLinear)
	}
	return int(c.p.Job.XSize), int(c.p.Job.MaxLinear)
}

// DirectLimits returns the maximum number of own sites whose members exchange messages all at once,
// and the number of bytes from which they do so part by part, as in coll.Tuning: the same at all
// members. It returns -1 and 0 if no limit is set, or for members of different jobs, which have not
// agreed on the limits.
func DirectLimits(c *Comm) (direct, long int) {
	if c.common != nil || c.p.Job.Direct <= 0 {
		return -1, 0
	}
	return int(c.p.Job.Direct), int(c.p.Job.DirectLong)
}

// Checks reports whether the members compare their calls.
func (c *Comm) Checks() bool { return c.p.Check && (c.common == nil || c.common.Check) }

// Before reports whether the group of proc a comes before that of b if nothing else decides. All
// procs get the same answer, whatever numbers they have for others.
//
// IMPI ch.4, Intercomm_merge: by the ranks in the world; by the world, if they are
// of several.
func (ws *worlds) Before(a, b comm.Proc) bool {
	if !ws.Foreign(message.Peer(a)) && !ws.Foreign(message.Peer(b)) {
		return a < b
	}
	return ws.Member(a).Compare(ws.Member(b)) < 0
}

// maxEarly is the most links from worlds that are not known yet that a proc keeps during a meeting.
// Outside of meetings it keeps none.
const maxEarly = 256

func (w *ConnectedWorld) card(rank wire.WorldRank) *dynamic.BusinessCard {
	n := int(rank)
	for i := range w.Groups {
		if n < w.Groups[i].Count {
			return &w.Groups[i].Card
		}
		n -= w.Groups[i].Count
	}
	panic(fmt.Sprintf("mpi: rank %d of a world of %d", rank, w.Members))
}

// openForeign asks the node for a link to a proc of another world. No agent carries packets to it.
func (ws *worlds) openForeign(peer message.Peer) { ws.open(peer, wireup.OtherWorld{}) }

func (ws *worlds) open(peer message.Peer, m wireup.OtherWorld) {
	w := ws.WorldOf(comm.Proc(peer))
	x, err := ws.request(w, peer, m)
	if err == nil {
		w.opening[peer] = true
		err = ws.p.Node.Control.Send(x)
	}
	if err != nil {
		ws.p.Eng.PeerDown(peer, err)
	}
}

// request returns a message to the node about a proc of another world, with what the node needs to
// dial it.
func (ws *worlds) request(w *ConnectedWorld, peer message.Peer, m wireup.OtherWorld) (wireup.Message, error) {
	rank := wire.WorldRank(comm.Proc(peer) - w.First)
	card, err := w.card(rank).AppendText(nil)
	m.World, m.Secret, m.Card = w.World[:], w.Secret[:], string(card)
	return wireup.Message{Kind: wireup.KindOpen, Peer: rank, Meeting: &m}, err
}

// takeForeign handles a link to a proc of another world, or the message that there is none.
func (ws *worlds) takeForeign(d LinkMessage) {
	var name dynamic.WorldID
	if copy(name[:], d.Msg.Meeting.World) != len(name) || ws.Description == nil {
		d.close()
		return
	}
	w := ws.Known(name)
	switch {
	case d.Msg.Resumable != nil && d.Msg.Resumable.Again:
		ws.takeAgain(d)
	case w == nil && d.L != nil && ws.meetings > 0 && len(ws.Early) < maxEarly:
		ws.Early = append(ws.Early, d)
	case w == nil || d.Msg.Peer < 0 || int(d.Msg.Peer) >= w.Members:
		if d.L != nil {
			ws.p.Disconnects.tellForgotten(name[:], d.Msg.Peer)
		}
		d.close()
	default:
		ws.takeLink(d, w, message.Peer(w.First)+message.Peer(d.Msg.Peer))
		delete(w.opening, message.Peer(w.First)+message.Peer(d.Msg.Peer))
		ws.forget(w)
	}
}

// takeAgain handles a further connection of a link, or the message that there is none. Those of a
// link whose world is not known yet wait behind it.
func (ws *worlds) takeAgain(d LinkMessage) {
	session := string(d.Msg.Resumable.Session)
	first := func(x LinkMessage) bool {
		return x.Msg.Resumable != nil && string(x.Msg.Resumable.Session) == session && x.Msg.Peer == d.Msg.Peer && string(x.Msg.Meeting.World) == string(d.Msg.Meeting.World)
	}
	if slices.ContainsFunc(ws.Early, first) && len(ws.Early) < maxEarly {
		ws.Early = append(ws.Early, d)
		return
	}
	ws.p.Endpoints.again(&d)
}

func (ws *worlds) takeLink(d LinkMessage, w *ConnectedWorld, peer message.Peer) {
	if ws.p.lifeChecks.inquires(d, peer) {
		return
	}
	if d.L == nil {
		w.lost = w.lost || !ws.p.Survival.outlives(w) // otherwise only that proc is lost
		why := fmt.Errorf("%w: %s", ErrUnreachable, d.Msg.Reason)
		if ws.p.Survival.misses(peer, d.Msg.Reason) {
			why = ws.p.Survival.failed(peer, d.Msg.Reason)
		}
		ws.p.Eng.PeerDown(peer, why)
		ws.p.WakeAll()
		return
	}
	w.opening[peer] = true // requests wait for the proc, even if the world is left
	ws.p.Disconnects.supersede(peer)
	q, err := ws.addLink(&d, w, peer)
	if err != nil {
		d.close()
		ws.p.Disconnects.tellForgotten(w.World[:], d.Msg.Peer)
		ws.p.Eng.PeerDown(peer, err)
		return
	}
	ws.p.Eng.SetRoute(peer, q.ID)
	if w.Leaving && ws.meetings == 0 {
		ws.p.Disconnects.askToClose(q)
	}
}

func (ws *worlds) addLink(d *LinkMessage, w *ConnectedWorld, peer message.Peer) (*Endpoint, error) {
	if d.Msg.Resumable == nil {
		return ws.p.Endpoints.Add(ws.p.Trace.Traced(d.L, fmt.Sprintf("%s to %v", d.Msg.Transport, ws.Member(comm.Proc(peer))), message.NoPeer), peer)
	}
	away, err := ws.request(w, peer, wireup.OtherWorld{})
	if err != nil {
		return nil, err
	}
	return ws.p.Endpoints.addResumable(d, peer, &away)
}

// takeEarly calls takeForeign again for links that came before their world was known.
func (ws *worlds) takeEarly() {
	early := ws.Early
	ws.Early = nil
	for _, d := range early {
		ws.takeForeign(d)
	}
}

func (d *LinkMessage) close() {
	if d.L != nil {
		_ = d.L.Close()
	}
}

// loseForeign is Lose for a link to another world. If this proc has asked to close it, the other
// end may have agreed in a word that has not come yet, and another link may follow. Otherwise the
// proc there is gone, and requests that need it fail from now on.
func (q *Endpoint) loseForeign(cause error) {
	p := q.p
	p.Disconnects.forgetLink(q)
	if q.closing == staying && !q.superseded && p.lifeChecks.suspects(q, cause) {
		return
	}
	q.detachForeign(cause)
}

func (q *Endpoint) detachForeign(cause error) {
	p := q.p
	p.Eng.Detach(q.ID, cause)
	p.Endpoints.vacant = append(p.Endpoints.vacant, q.ID)
	if q.said != nil {
		p.Eng.Release(q.said)
		q.said = nil
	}
	p.WakeAll()
	if g := p.Worlds.Remotes[q.Peer]; g != nil {
		g.LinkClosed()
		return
	}
	w := p.Worlds.WorldOf(comm.Proc(q.Peer))
	if q.closing != staying {
		p.Eng.ResetPeer(q.Peer)
	}
	if w != nil {
		w.lost = w.lost || q.closing != agreed && !p.Survival.outlives(w)
		p.Worlds.forget(w)
	}
}

// away makes w say that the proc is of another world, and of which one if that is known. The
// process is locked.
func (nc *nodeControl) away(w *wireup.Partner, peer message.Peer) {
	w.OtherWorld, w.Peer = true, 0
	if met := nc.p.Worlds.WorldOf(comm.Proc(peer)); met != nil && peer != message.NoPeer {
		w.World, w.Peer = met.World.String(), wire.WorldRank(comm.Proc(peer)-met.First)
	}
}
