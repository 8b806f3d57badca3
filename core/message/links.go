package message

import "fmt"

// LinkID is the number of a link. The driver chooses it: small dense integers.
type LinkID int32

// NoLink is the LinkID that stands for no link.
const NoLink LinkID = -1

type linkState struct {
	id   LinkID
	peer *peer // of a direct link: the only peer whose packets may come by it
	last *peer // sender of the last packet, if the link is not direct
	err  error // the peer broke the protocol
	fini bool  // PK_FINI came

	wantsAllowance bool // a message waits for an allowance

	outputState
	inputState
}

// Attach adds a link that may carry packets of any peer, such as the one to the agent.
func (e *linkTable) Attach(l LinkID) { e.attach(l) }

// AttachPeer adds a direct link. Packets from others than p are an error.
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

// link returns an attached link; asking for another one is a bug of the driver.
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

// SetRoute decides by which link packets to p leave, and sends those that have waited for this. The
// decision is final: on another link packets might overtake those sent before, and messages must
// not (MPI-4.1, 3.5). A peer that is down needs no route.
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
	if q.on && s.peer == q {
		q.window.Widen(directHiWater)
	}
	e.wake(q)
}

// directHiWater is the most packets on their way to a proc of ours by a direct link. What the peer
// keeps is bounded in bytes there, by the allowance, and no agent stores packets, so the job's
// hiwater would only make far procs wait: at 100 ms its 128 are 1,280 messages a second.
const directHiWater = 1 << 16

// Route returns the link by which packets to p leave.
func (e *linkTable) Route(p Peer) (LinkID, bool) {
	if q := e.peers.find(p); q != nil && q.link != nil {
		return q.link.id, true
	}
	return NoLink, false
}

// Unrouted returns the next peer that has no route although something is to be sent to it. Each
// peer is returned once.
func (e *linkTable) Unrouted() (Peer, bool) {
	for e.unrouted.len > 0 {
		if p := e.unrouted.pop(); p.link == nil && p.down == nil {
			return p.index, true
		}
	}
	return NoPeer, false
}

// Detach records that a link is gone; its number may be used again. Peers whose packets left by it,
// or came by it if they have no other route, are down from then on, as after PeerDown.
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
		s.peer.boxed += s.boxes.FastBoxesSent()
		s.peer.fastBoxes = nil
	}
	s.segments.clear() // only now, since PeerDown ends the sends that these refer to
	s.committed = 0
	e.links[l] = nil
}
