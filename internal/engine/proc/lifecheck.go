package proc

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/internal/drive"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// A link to a proc of another world that has broken, without both ends having agreed to close it,
// is not proof that the proc is dead, and what was on it is missing if it lives. So each end asks
// its node for a link once more, on which both say what they know: see lifeCheck. A proc to which
// no link can be made is lost. Of two that live, the one whose world has the greater name gives way
// to the other, and ends. The other one sees to it that this is known there: until then it does not
// leave Finalize.

// lifeChecks are what a proc asks others about after such a loss. Its methods may be called with
// nil, for a job that ends with its first loss. The process's lock guards it.
type lifeChecks struct {
	p *Process
	s *Survival

	suspected map[message.Peer]*suspicion // procs of other worlds to which the link has broken
	untold    map[message.Peer]*suspicion // those of them that give way to this one, and may not know it
	cut       map[message.Peer]bool       // those to which a link has ever broken
	links     []*lifeCheck
}

func newLifeChecks(p *Process) *lifeChecks {
	return &lifeChecks{p: p, s: p.Survival, suspected: make(map[message.Peer]*suspicion), untold: make(map[message.Peer]*suspicion), cut: make(map[message.Peer]bool)}
}

// suspicion is what a proc keeps of a broken link until it knows whether the proc at its other end
// lives; if that one gives way, until it has ended or cannot be asked.
type suspicion struct {
	q     *Endpoint // dropped, but still the way of what is to be sent to its peer
	cause error
	tries int // links that ended before the other end had said something, or knew
	x     *lifeCheck
	ended bool // it does not live, or cannot be asked
}

// The most links that are made to ask a proc, and the first and the longest pause between two: a
// node may accept links for a proc that has just died.
const (
	maxLifeChecks  = 12
	firstLifeCheck = 10 * time.Millisecond
	lastLifeCheck  = time.Second
	// Of a proc that does not answer while it lives, its node says so after 20 s: that is as good as
	// so many links, and so is a link by which it is to learn that it is lost and that it leaves open
	// for so long.
	unansweredChecks = 3
	longestCheck     = 20 * time.Second
)

// suspects notes that a link to another world has broken, and reports whether it is kept until the
// node has said more.
func (c *lifeChecks) suspects(q *Endpoint, cause error) bool {
	if c == nil || !c.s.outlives(c.p.Worlds.WorldOf(comm.Proc(q.Peer))) {
		return false
	}
	c.cut[q.Peer] = true
	switch at := LifeState(c.p.State.Load()); {
	case c.s.Has(q.Peer):
		return false
	case at >= quiet || at >= Finalizing && c.s.gone[q.Peer]:
		c.s.gone[q.Peer] = true
		return false
	case !c.s.cares(q.Peer):
		return false
	}
	c.suspected[q.Peer] = &suspicion{q: q, cause: cause}
	c.askNode(q.Peer)
	return true
}

// askNode asks the node for a link to a proc to which there was one.
func (c *lifeChecks) askNode(peer message.Peer) {
	c.p.Worlds.open(peer, wireup.OtherWorld{LifeCheck: true})
}

// inquires handles the node's answer about a proc to which a link has broken, and reports whether
// it was one.
func (c *lifeChecks) inquires(d LinkMessage, peer message.Peer) bool {
	if c == nil {
		return false
	}
	x, untold := c.suspected[peer], c.untold[peer]
	switch {
	case d.L == nil && untold != nil && d.Msg.Meeting.Lives:
		untold.tries += unansweredChecks - 1
		c.again(untold)
	case d.L == nil && untold != nil:
		c.knows(peer) // it has ended
	case d.L == nil && x == nil:
		return false // a first link could not be made
	case d.L == nil && d.Msg.Meeting.Lives:
		c.bothLive(peer)
	case d.L == nil:
		c.unreachable(peer, d.Msg.Reason)
	case x == nil && !c.cut[peer] && !c.s.Has(peer):
		return false
	default:
		c.startLifeCheck(d.L, peer)
	}
	return true
}

// unreachable ends a suspicion of a proc to which there is no link.
func (c *lifeChecks) unreachable(peer message.Peer, reason string) {
	x := c.suspected[peer]
	switch {
	case x == nil:
	case LifeState(c.p.State.Load()) >= Finalizing || !c.s.cares(peer):
		c.s.gone[peer] = true
		c.clearSuspicion(peer, x.cause)
	default:
		x.ended = true
		c.s.broke(peer, fmt.Sprintf("%v; no other one can be made: %s", x.cause, reason))
	}
}

// bothLive ends a suspicion of a proc that lives: one of the two gives way.
func (c *lifeChecks) bothLive(peer message.Peer) {
	x := c.suspected[peer]
	switch {
	case x == nil:
	case !c.s.cares(peer):
		c.clearSuspicion(peer, x.cause)
	case c.p.Worlds.Member(comm.Proc(c.p.Job.Rank)).Compare(c.p.Worlds.Member(comm.Proc(peer))) > 0:
		c.s.Excluded(fmt.Sprintf("%v; both live, and this one gives way", x.cause))
	default:
		c.s.broke(peer, fmt.Sprintf("%v; both live, and that one gives way", x.cause))
	}
}

// mustKnow sees to it that a proc of another world that is taken for lost knows it, unless it has
// ended; q is the link to it, if it was not broken. Each proc that goes on does so, as the one that
// has found the link broken may die before it can.
func (c *lifeChecks) mustKnow(peer message.Peer, q *Endpoint) {
	sus := c.suspected[peer]
	switch {
	case sus == nil && q == nil || sus != nil && sus.ended || c.untold[peer] != nil:
		return
	case !c.s.outlives(c.p.Worlds.WorldOf(comm.Proc(peer))) || LifeState(c.p.State.Load()) >= quiet:
		return
	case sus == nil:
		c.untold[peer] = &suspicion{q: q}
	default:
		c.untold[peer] = &suspicion{q: sus.q, x: sus.x}
	}
	if x := c.untold[peer].x; x == nil || x.failed {
		c.askNode(peer)
	} else {
		c.limit(x)
	}
}

// limit ends a link by which a proc is to learn that it is lost: one that is stopped, or computes,
// neither reads nor ends it.
func (c *lifeChecks) limit(x *lifeCheck) {
	c.p.Machine.AfterFunc(longestCheck, func() {
		c.p.Lock()
		defer c.p.Unlock()
		if untold := c.untold[x.peer]; !x.failed && untold != nil && untold.x == x {
			untold.tries += unansweredChecks - 1
			x.Drop(nil)
		}
	})
}

func (c *lifeChecks) knows(peer message.Peer) {
	delete(c.untold, peer)
	if w := c.p.Worlds.WorldOf(comm.Proc(peer)); w != nil {
		c.p.Worlds.forget(w) // a suspicion has kept it
	}
	c.p.WakeAll() // Finalize waits for it
}

// asks reports whether this proc has to ask one of w whether it lives.
func (c *lifeChecks) asks(w *ConnectedWorld) bool {
	if c == nil {
		return false
	}
	for _, asked := range []map[message.Peer]*suspicion{c.suspected, c.untold} {
		for peer := range asked {
			if w.has(comm.Proc(peer)) {
				return true
			}
		}
	}
	return false
}

// clearSuspicion ends a suspicion; requests that need the proc fail.
func (c *lifeChecks) clearSuspicion(peer message.Peer, why error) {
	x := c.suspected[peer]
	if x == nil {
		return
	}
	delete(c.suspected, peer)
	x.q.detachForeign(why)
}

// clearSuspicions ends all suspicions and life checks, as nobody needs another proc any more.
func (c *lifeChecks) clearSuspicions() {
	if c == nil {
		return
	}
	for _, peer := range slices.Sorted(maps.Keys(c.suspected)) {
		c.clearSuspicion(peer, c.suspected[peer].cause)
	}
	clear(c.untold)
	for _, x := range slices.Clone(c.links) {
		x.close()
	}
}

// lifeCheck is a link by which two procs say what they know, after the one before has broken. Each
// sends one word, and ends its side when it has read that of the other.
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

func (c *lifeChecks) startLifeCheck(l link.Link, peer message.Peer) {
	x := &lifeCheck{p: c.p, peer: peer, id: message.LinkID(len(c.p.Endpoints.List))}
	x.Link = l
	says := saysDone
	switch {
	case c.untold[peer] != nil:
		c.untold[peer].x = x
		c.limit(x)
		says = saysLost
	case c.s.Has(peer):
		says = saysLost
	case c.suspected[peer] != nil:
		c.suspected[peer].x = x
		says = saysLives
	}
	x.out = append([]byte(lifeWord), says)
	c.p.Endpoints.List = append(c.p.Endpoints.List, nil) // keeps the number
	c.links = append(c.links, x)
	if err := c.p.Driver.Add(&x.Endpoint, uint32(x.id), x); err != nil {
		x.Drop(err)
		return
	}
	x.Flush()
}

// Due implements drive.EndpointIO.
func (x *lifeCheck) Due() bool { return len(x.out) > 0 }

// Flush implements drive.EndpointIO.
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

// Receive implements drive.EndpointIO.
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
			x.p.lifeChecks.answered(x, x.in)
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

// Drop implements drive.EndpointIO; no cause is looked at. A link on which the other end has said
// nothing proves nothing.
func (x *lifeCheck) Drop(cause error) {
	if x.failed {
		return
	}
	x.close()
	c := x.p.lifeChecks
	if untold := c.untold[x.peer]; untold != nil && untold.x == x {
		c.again(untold) // its node says whether it has ended
	} else if sus := c.suspected[x.peer]; sus != nil && sus.x == x && !x.heard {
		c.again(sus)
	}
}

func (x *lifeCheck) close() {
	if x.failed {
		return
	}
	x.failed = true
	x.p.Driver.Remove(&x.Endpoint)
	_ = x.Link.Close()
	c := x.p.lifeChecks
	c.links = slices.DeleteFunc(c.links, func(y *lifeCheck) bool { return y == x })
	x.p.Endpoints.vacant = append(x.p.Endpoints.vacant, x.id)
	if x.p.Worlds.WorldOf(comm.Proc(x.peer)) != nil {
		who := x.p.Worlds.Member(comm.Proc(x.peer))
		x.p.Disconnects.tellForgotten(who.World[:], who.Rank)
	}
}

// again asks for one more link after a while.
func (c *lifeChecks) again(sus *suspicion) {
	peer := sus.q.Peer
	switch sus.tries++; {
	case sus.tries >= maxLifeChecks && c.untold[peer] == sus:
		c.knows(peer)
		return
	case sus.tries >= maxLifeChecks:
		c.unreachable(peer, "it does not answer")
		return
	}
	c.p.Machine.AfterFunc(min(firstLifeCheck<<(sus.tries-1), lastLifeCheck), func() {
		c.p.Lock()
		defer c.p.Unlock()
		if c.suspected[peer] == sus || c.untold[peer] == sus {
			c.askNode(peer)
		}
	})
}

// answered handles what the other end has said in a lifeCheck. Anything else than the word comes
// from a proc that has a use for the link, so it lives.
func (c *lifeChecks) answered(x *lifeCheck, word []byte) {
	says := saysLives
	if bytes.HasPrefix(word, []byte(lifeWord)) {
		says = word[len(lifeWord)]
	}
	switch sus := c.suspected[x.peer]; {
	case says == saysLost:
		c.s.Excluded("it has broken off with this rank")
	case sus == nil || sus.x != x:
	case says == saysDone:
		c.unreachable(x.peer, "it has no use for it")
	default:
		c.bothLive(x.peer)
	}
	if !x.failed {
		_ = x.Link.CloseSend()
	}
}
