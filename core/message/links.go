package message

import "fmt"

// LinkID names a link. The driver chooses it: small dense integers.
type LinkID int32

// NoLink is no link at all.
const NoLink LinkID = -1

// linkState is the engine's side of one link.
type linkState struct {
	id   LinkID
	peer *peer // direct links: the only sender
	last *peer // other links: whose packet came last
	err  error // the peer broke the protocol
	fini bool  // PK_FINI came

	needy bool // a message without allowance waits

	outputState
	inputState
}

// Attach announces a link that may carry packets of any peer, as the one to the
// agent does.
func (e *linkTable) Attach(l LinkID) { e.attach(l) }

// AttachPeer announces a direct link. Packets of others than p are a fault.
func (e *linkTable) AttachPeer(l LinkID, p Peer) { e.attach(l).peer = e.peer(p) }

func (e *linkTable) attach(l LinkID) *linkState {
	for int(l) >= len(e.links) {
		e.links = append(e.links, nil)
	}
	if e.links[l] != nil {
		panic(fmt.Sprintf("message: link %d is attached already", l))
	}
	e.links[l] = &linkState{id: l, outputState: outputState{limit: commitLimit}, inputState: inputState{tight: true}}
	return e.links[l]
}

// link gives an attached link; asking for another is the driver's bug.
func (e *linkTable) link(l LinkID) *linkState {
	s := e.linkOrNil(l)
	if s == nil {
		panic(fmt.Sprintf("message: link %d is not attached", l))
	}
	return s
}

func (e *linkTable) linkOrNil(l LinkID) *linkState {
	if l < 0 || int(l) >= len(e.links) {
		return nil
	}
	return e.links[l]
}

// SetRoute decides by which link packets to p leave, and releases what waited
// for that. The decision is final, because another link might be faster and
// packets must not overtake each other. A peer that is down needs none.
func (e *linkTable) SetRoute(p Peer, l LinkID) {
	q := e.peer(p)
	if q.down != nil {
		return
	}
	s := e.link(l)
	if q.link == s {
		return
	}
	if q.link != nil || q == e.self {
		panic(fmt.Sprintf("message: peer %d has a route, it cannot get link %d", p, l))
	}
	q.link = s
	e.wake(q)
}

// Route gives the link by which packets to p leave.
func (e *linkTable) Route(p Peer) (LinkID, bool) {
	if q := e.peers.find(p); q != nil && q.link != nil {
		return q.link.id, true
	}
	return NoLink, false
}

// Unrouted gives the next peer to which something is to be sent and that has no
// route. Each peer is given once.
func (e *linkTable) Unrouted() (Peer, bool) {
	for e.unrouted.len > 0 {
		if p := e.unrouted.pop(); p.link == nil && p.down == nil {
			return p.index, true
		}
	}
	return NoPeer, false
}

// Detach says that a link is gone; its number may be used again. Peers that are
// reached by it, or were heard by it and are reached by no other, are down, as
// by PeerDown.
func (e *Engine) Detach(l LinkID, cause error) {
	s := e.link(l)
	if n := s.incomplete(); n > 0 {
		cause = fmt.Errorf("%w, in the middle of a packet: %d bytes of it are missing", cause, n)
	}
	for _, p := range e.peers.made {
		if p != e.self && (p.link == s || s.peer == p || p.link == nil && p.from == s || s.payload && s.sender == p) {
			e.PeerDown(p.index, cause)
		}
	}
	if s.boxes != nil {
		s.peer.fastBoxes = nil
	}
	s.segments.clear() // only now: sends end with what the link did not take of them
	s.committed = 0
	e.links[l] = nil
}
