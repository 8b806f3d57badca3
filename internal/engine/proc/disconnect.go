package proc

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/drive"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// A link to a proc of another world is closed only if both procs agree. A proc that has no
// communicator with that world any more sends wordClose. The other proc answers wordClose, after
// which neither sends anything by this link again, or wordStay, and sends wordClose later. So a
// link is never used by one proc after the other has given it up.

// linkWord is what two procs tell each other about closing their link: a tag in a context that no
// communicator has.
type linkWord wire.Tag

const (
	wordClose linkWord = 1 + iota // the sender will not use the link again, unless the answer is wordStay
	wordStay                      // the sender still needs the receiver's world

	closeContext wire.ContextID = 1<<64 - 12

	// firstOwnContext is the first of those that no communicator gets.
	firstOwnContext wire.ContextID = 1<<64 - 64
)

// closeState is how far an endpoint is on its way to be closed.
type closeState uint8

const (
	staying closeState = iota
	asked              // this proc has sent wordClose and has no answer
	agreed             // both procs have sent wordClose: the endpoint ends once all is written
)

// closingLinks receives the words of all procs of other worlds. It is a background operation that
// is over when there are none.
type closingLinks struct {
	p       *Process
	r       *message.Request
	closing []*Endpoint // endpoints that both ends have agreed to close
}

type disconnects struct {
	p       *Process
	closing *closingLinks // receives the words; nil: no world is known
}

func (dc *disconnects) listen() {
	if dc.closing == nil {
		dc.closing = &closingLinks{p: dc.p}
		dc.closing.post()
		dc.p.Background.List = append(dc.p.Background.List, dc.closing)
	}
}

func (x *closingLinks) post() {
	x.r = x.p.Eng.Recv(message.Envelope{Context: closeContext, Rank: message.AnySource, Tag: message.AnyTag}, message.NoPeer, nil)
}

// CarryOn implements BackgroundOp.
func (x *closingLinks) CarryOn() bool {
	p := x.p
	for x.r.Done() {
		s := x.r.Status()
		peer, w := s.Peer, linkWord(s.Tag)
		p.Eng.Release(x.r)
		x.post()
		if q := p.Endpoints.endpointOf(peer); q != nil {
			p.Disconnects.heard(q, w)
		}
	}
	for _, q := range slices.Clone(x.closing) {
		if p.Endpoints.List[q.ID] != q {
			x.closing = slices.DeleteFunc(x.closing, func(c *Endpoint) bool { return c == q })
		} else if !q.ended && q.said.Done() && !p.Eng.HasOutput(q.ID) {
			p.Disconnects.forgetLink(q)
			q.CloseSend()
		}
	}
	if len(p.Worlds.Table.Load().Met) > 0 {
		return false
	}
	p.Eng.Cancel(x.r)
	p.Eng.Release(x.r)
	p.Disconnects.closing = nil
	return true
}

// close ends an endpoint that both ends have agreed on, once all is written.
func (x *closingLinks) close(q *Endpoint) {
	q.closing = agreed
	x.closing = append(x.closing, q)
}

func (es *endpoints) endpointOf(peer message.Peer) *Endpoint {
	i := slices.IndexFunc(es.List, func(q *Endpoint) bool { return q != nil && q.Peer == peer })
	if i < 0 {
		return nil
	}
	return es.List[i]
}

func (dc *disconnects) say(q *Endpoint, w linkWord) *message.Request {
	r := dc.p.Eng.Send(q.Peer, message.Envelope{Context: closeContext, Tag: wire.Tag(w)}, message.Standard, nil, 0, 0)
	dc.p.Endpoints.Send(q.Peer, 0, true)
	return r
}

func (dc *disconnects) askToClose(q *Endpoint) {
	if q.closing == staying && !q.ended {
		q.closing = asked
		if q.said = dc.say(q, wordClose); dc.p.Endpoints.List[q.ID] != q { // sending has found the link broken
			dc.p.Eng.Release(q.said)
			q.said = nil
		}
	}
}

func (dc *disconnects) heard(q *Endpoint, w linkWord) {
	switch {
	case w == wordStay && q.closing == asked:
		q.closing = staying
		dc.p.Eng.Release(q.said)
		q.said = nil
	case w == wordClose && q.closing == asked:
		dc.closing.close(q)
	case w == wordClose && q.closing == staying && dc.done(q):
		dc.askToClose(q)
		dc.closing.close(q)
	case w == wordClose && q.closing == staying:
		dc.p.Eng.Release(dc.say(q, wordStay))
	}
	dc.p.WakeAll() // goroutines may wait for the answer
}

// done reports whether nothing here needs the world at the other end of q.
func (dc *disconnects) done(q *Endpoint) bool {
	w := dc.p.Worlds.WorldOf(comm.Proc(q.Peer))
	return w != nil && w.Leaving && dc.p.Worlds.meetings == 0
}

// BeginMeeting and EndMeeting enclose a meeting, which may make worlds known. Meanwhile no link to
// a world is given up, because the meeting may need it.
func (dc *disconnects) BeginMeeting() { dc.p.Worlds.meetings++ }

// EndMeeting ends a meeting. The end of the last one gives up links that are not needed.
func (dc *disconnects) EndMeeting() {
	if dc.p.Worlds.meetings--; dc.p.Worlds.meetings > 0 {
		return
	}
	dc.p.Worlds.takeEarly() // links whose worlds are still unknown are closed
	if dc.p.Survival != nil {
		dc.p.Node.news.Store(true) // links may be asked for now
	}
	for _, w := range slices.Clone(dc.p.Worlds.Table.Load().Met) {
		if w.Leaving {
			dc.leave(w)
		}
	}
}

// leave gives up the links to a world that no communicator of this proc has members of.
func (dc *disconnects) leave(w *MetWorld) {
	if dc.p.Worlds.meetings > 0 {
		return // EndMeeting does it
	}
	for _, q := range dc.p.Endpoints.List {
		if q != nil && q.Peer != message.NoPeer && w.has(comm.Proc(q.Peer)) {
			dc.askToClose(q)
		}
	}
	dc.p.Worlds.forget(w)
}

// AwaitClosing waits until no link to a member of g is about to be closed. It must be called before
// anything is sent to members that were met in the current meeting: a proc that has sent wordClose
// must send nothing before it has the answer.
func (dc *disconnects) AwaitClosing(g *comm.Group) error {
	for dc.p.Failure == nil {
		if !slices.ContainsFunc(dc.p.Endpoints.List, func(q *Endpoint) bool {
			return q != nil && (q.closing != staying || q.ended) && dc.p.Worlds.Foreign(q.Peer) && contains(g, q.Peer)
		}) {
			return nil
		}
		dc.p.AwaitProgress()
	}
	return dc.p.Failure
}

func contains(g *comm.Group, peer message.Peer) bool {
	_, ok := g.Rank(comm.Proc(peer))
	return ok
}

// supersede drops the link to a proc from which a new link has come: the other end must have
// closed it.
func (dc *disconnects) supersede(peer message.Peer) {
	if q := dc.p.Endpoints.endpointOf(peer); q != nil {
		q.forgotten, q.superseded = true, true // the node has replaced this link by the new one
		q.Drop(io.EOF)
		dc.p.Eng.Renew(peer)
	}
}

// forgetLink tells the node that the link at q is closed, so that another one may be made.
func (dc *disconnects) forgetLink(q *Endpoint) {
	if q.forgotten || dc.p.Worlds.Remotes[q.Peer] != nil {
		return
	}
	q.forgotten = true
	if dc.p.Worlds.WorldOf(comm.Proc(q.Peer)) != nil {
		who := dc.p.Worlds.Member(comm.Proc(q.Peer))
		dc.tellForgotten(who.World[:], who.Rank)
	}
}

func (dc *disconnects) tellForgotten(world []byte, rank wire.WorldRank) {
	_ = dc.p.Node.Control.Send(wireup.Message{Kind: wireup.KindForget, Peer: rank, Meeting: &wireup.Meeting{World: world}}) // without a node there are no links to forget
}

// HasDisconnected reports whether this proc has disconnected from the world at the other end of q.
func (dc *disconnects) HasDisconnected(q *Endpoint) bool {
	w := dc.p.Worlds.WorldOf(comm.Proc(q.Peer))
	return w == nil || w.Leaving
}

// DisconnectAll is Disconnect from each of the worlds, for a locked process.
func (dc *disconnects) DisconnectAll(met []*MetWorld) {
	for _, w := range met {
		if w.Uses.Load() == 0 {
			w.Leaving = true
			dc.releaseSpawned(w)
			dc.leave(w)
		}
	}
}

func (dc *disconnects) releaseSpawned(w *MetWorld) {
	if w.Spawn != 0 && dc.p.Node.Control != nil {
		_ = dc.p.Node.Control.Send(wireup.Message{Kind: wireup.KindDisconnect, Meeting: &wireup.Meeting{Request: w.Spawn}})
		w.Spawn = 0
	}
}

// DisconnectLost disconnects from those of the worlds whose jobs seem to be over.
func (dc *disconnects) DisconnectLost(met []*MetWorld) {
	dc.p.Lock()
	defer dc.p.Unlock()
	dc.DisconnectAll(slices.DeleteFunc(met, func(w *MetWorld) bool { return !w.lost }))
}

// Disconnect ends the links to those worlds in met of which this proc's communicators have no
// members any more (MPI-4.1, 11.10.4).
func (dc *disconnects) Disconnect(met []*MetWorld) {
	dc.p.Lock()
	defer dc.p.Unlock()
	dc.DisconnectAll(met)
}

// A link to a proc of another world that has broken, without both ends having agreed to close it, is not
// proof that the proc is dead, and what was on it is missing if it lives. So each end asks its node for a
// link once more, on which both say what they know: see lifeCheck. A proc to which no link can be made is
// lost. Of two that live, the one whose world has the greater name gives way to the other, and ends.

// suspicion is what a proc keeps of a broken link until it knows whether the proc at its other end lives.
type suspicion struct {
	q     *Endpoint // dropped, but still the way of what is to be sent to its peer
	cause error
	tries int // links that ended before the other end had said something
	x     *lifeCheck
}

// The most links that are made to ask a proc, and the first and the longest pause between two: a node may
// accept links for a proc that has just died.
const (
	maxLifeChecks  = 12
	firstLifeCheck = 10 * time.Millisecond
	lastLifeCheck  = time.Second
)

// suspects notes that a link to another world has broken, and reports whether it is kept until the node has
// said more.
func (s *Survival) suspects(q *Endpoint, cause error) bool {
	if s == nil || !s.outlives(s.p.Worlds.WorldOf(comm.Proc(q.Peer))) {
		return false
	}
	s.cut[q.Peer] = true
	switch at := Phase(s.p.State.Load()); {
	case s.Has(q.Peer):
		return false
	case at >= quiet || at >= Finalizing && s.gone[q.Peer]:
		s.gone[q.Peer] = true
		return false
	case !s.cares(q.Peer):
		return false
	}
	s.suspected[q.Peer] = &suspicion{q: q, cause: cause}
	s.p.Worlds.openForeign(q.Peer)
	return true
}

// inquires handles the node's answer about a proc to which a link has broken, and reports whether it was one.
func (s *Survival) inquires(d Delivery, peer message.Peer) bool {
	if s == nil {
		return false
	}
	x := s.suspected[peer]
	switch {
	case d.L == nil && x == nil:
		return false // a first link could not be made
	case d.L == nil && d.Msg.Meeting.Lives:
		s.bothLive(peer)
	case d.L == nil:
		s.unreachable(peer, d.Msg.Reason)
	case x == nil && !s.cut[peer] && !s.Has(peer):
		return false
	default:
		s.startLifeCheck(d.L, peer)
	}
	return true
}

// unreachable ends a suspicion of a proc to which there is no link.
func (s *Survival) unreachable(peer message.Peer, reason string) {
	x := s.suspected[peer]
	switch {
	case x == nil:
	case Phase(s.p.State.Load()) >= Finalizing || !s.cares(peer):
		s.gone[peer] = true
		s.clearSuspicion(peer, x.cause)
	default:
		s.broke(peer, fmt.Sprintf("%v; no other one can be made: %s", x.cause, reason))
	}
}

// bothLive ends a suspicion of a proc that lives: one of the two gives way.
func (s *Survival) bothLive(peer message.Peer) {
	x := s.suspected[peer]
	switch {
	case x == nil:
	case !s.cares(peer):
		s.clearSuspicion(peer, x.cause)
	case s.p.Worlds.Member(comm.Proc(s.p.Job.Rank)).Compare(s.p.Worlds.Member(comm.Proc(peer))) > 0:
		s.Excluded(fmt.Sprintf("%v; both live, and this one gives way", x.cause))
	default:
		s.broke(peer, fmt.Sprintf("%v; both live, and that one gives way", x.cause))
	}
}

// clearSuspicion ends a suspicion; requests that need the proc fail.
func (s *Survival) clearSuspicion(peer message.Peer, why error) {
	x := s.suspected[peer]
	if x == nil {
		return
	}
	delete(s.suspected, peer)
	x.q.detachForeign(why)
}

// clearSuspicions ends all suspicions and life checks, as nobody needs another proc any more.
func (s *Survival) clearSuspicions() {
	if s == nil {
		return
	}
	for _, peer := range slices.Sorted(maps.Keys(s.suspected)) {
		s.clearSuspicion(peer, s.suspected[peer].cause)
	}
	for _, x := range slices.Clone(s.lifeChecks) {
		x.close()
	}
}

// lifeCheck is a link by which two procs say what they know, after the one before has broken. Each sends one
// word, and ends its side when it has read that of the other.
type lifeCheck struct {
	drive.Endpoint
	p      *Process
	id     message.LinkID
	peer   message.Peer
	out    []byte // of the own word, what is not sent yet
	in     []byte // of the other's word, what has come
	heard  bool
	failed bool // the link has ended before
}

// What a proc says in a lifeCheck.
const (
	saysLives byte = iota // it needs the other one
	saysLost              // it goes on without the other one, which has to end
	saysDone              // it does not need the other one any more
)

// lifeWord begins what is said in a lifeCheck, as no packet does.
const lifeWord = "IMPI\xffulf"

func (s *Survival) startLifeCheck(l link.Link, peer message.Peer) {
	x := &lifeCheck{p: s.p, peer: peer, id: message.LinkID(len(s.p.Endpoints.List))}
	x.Link = l
	says := saysDone
	switch {
	case s.Has(peer):
		says = saysLost
	case s.suspected[peer] != nil:
		s.suspected[peer].x = x
		says = saysLives
	}
	x.out = append([]byte(lifeWord), says)
	s.p.Endpoints.List = append(s.p.Endpoints.List, nil) // keeps the number
	s.lifeChecks = append(s.lifeChecks, x)
	if err := s.p.Driver.Add(&x.Endpoint, uint32(x.id), x); err != nil {
		x.Drop(err)
		return
	}
	x.Flush()
}

// Due implements drive.Mover.
func (x *lifeCheck) Due() bool { return len(x.out) > 0 }

// Flush implements drive.Mover.
func (x *lifeCheck) Flush() (progress bool) {
	for len(x.out) > 0 && !x.failed {
		n, err := x.Link.Send([][]byte{x.out})
		switch x.out = x.out[n:]; {
		case err != nil:
			x.Drop(err)
			return true
		case n == 0:
			return progress
		}
		progress = true
	}
	return progress
}

// Receive implements drive.Mover.
func (x *lifeCheck) Receive() (progress bool) {
	progress = x.Flush()
	var buf [len(lifeWord) + 1]byte
	for range mostReads { // the other end may send without an end
		if x.failed {
			return progress
		}
		n, err := x.Link.Recv([][]byte{buf[:]})
		if !x.heard {
			x.in = append(x.in, buf[:n]...)
		}
		if !x.heard && len(x.in) >= len(buf) {
			x.heard = true
			x.p.Survival.answered(x, x.in)
		}
		switch {
		case err != nil && !x.failed:
			x.Drop(err)
			return true
		case n == 0:
			return progress
		}
		progress = true
	}
	return progress
}

// Drop implements drive.Mover. A link on which the other end has said nothing proves nothing.
func (x *lifeCheck) Drop(cause error) {
	if x.failed {
		return
	}
	x.close()
	s := x.p.Survival
	if sus := s.suspected[x.peer]; sus != nil && sus.x == x && !x.heard {
		s.again(sus)
	}
}

func (x *lifeCheck) close() {
	if x.failed {
		return
	}
	x.failed = true
	x.p.Driver.Remove(&x.Endpoint)
	_ = x.Link.Close()
	s := x.p.Survival
	s.lifeChecks = slices.DeleteFunc(s.lifeChecks, func(y *lifeCheck) bool { return y == x })
	x.p.Endpoints.vacant = append(x.p.Endpoints.vacant, x.id)
	if x.p.Worlds.WorldOf(comm.Proc(x.peer)) != nil {
		who := x.p.Worlds.Member(comm.Proc(x.peer))
		x.p.Disconnects.tellForgotten(who.World[:], who.Rank)
	}
}

// again asks for one more link after a while.
func (s *Survival) again(sus *suspicion) {
	peer := sus.q.Peer
	if sus.tries++; sus.tries == maxLifeChecks {
		s.unreachable(peer, "it does not answer")
		return
	}
	s.p.Machine.AfterFunc(min(firstLifeCheck<<(sus.tries-1), lastLifeCheck), func() {
		s.p.Lock()
		defer s.p.Unlock()
		if s.suspected[peer] == sus {
			s.p.Worlds.openForeign(peer)
		}
	})
}

// answered handles what the other end has said in a lifeCheck. Anything else than the word comes from a
// proc that has a use for the link, so it lives.
func (s *Survival) answered(x *lifeCheck, word []byte) {
	says := saysLives
	if bytes.HasPrefix(word, []byte(lifeWord)) {
		says = word[len(lifeWord)]
	}
	switch sus := s.suspected[x.peer]; {
	case says == saysLost:
		s.Excluded("it has broken off with this rank")
	case sus == nil || sus.x != x:
	case says == saysDone:
		s.unreachable(x.peer, "it has no use for it")
	default:
		s.bothLive(x.peer)
	}
	if !x.failed {
		_ = x.Link.CloseSend()
	}
}
