package main

import "time"

// Bounds of what may be under way to one peer. A peer that has died can hold so many messages of
// the endpoint's queue, and no more.
const maxPosted = 32

type peer struct {
	blob     string
	to       address
	known    bool // to is valid
	ready    bool // a message was sent to it
	posted   int  // messages that the provider has
	reading  int  // reads that it has
	links    int
	queue    []*stream // links that have something to send, each once
	refusals []refusal
	stuck    time.Time // since when nothing was sent although there is something
	idle     time.Time // since when it has no links
	dead     error
}

type refusal struct {
	number uint64
	why    uint64
}

// peer returns the peer with an address, or nil if there are too many.
func (n *node) peer(blob string) *peer {
	p := n.peers[blob]
	if p != nil && p.dead == nil {
		return p
	}
	next := &peer{blob: blob, idle: time.Now()}
	switch {
	case p == nil && len(n.peers) >= n.f.mostPeers():
		return nil
	case p == nil:
	case p.posted == 0 && p.reading == 0:
		p.drop(n)
	default: // sends to it may never complete: a new peer at the address does not wait for them
		next.to, next.known, p.known = p.to, p.known, false
	}
	n.peers[blob] = next
	return next
}

func (p *peer) busy() bool { return p.posted > 0 || len(p.queue) > 0 || len(p.refusals) > 0 }

// refuse answers a connect. If too many answers wait, this one is left out: connects are repeated.
func (p *peer) refuse(n *node, number, why uint64) {
	if len(p.refusals) < maxRefusals && p.dead == nil {
		p.refusals = append(p.refusals, refusal{number, why})
		p.push(n)
	}
}

// push posts what the peer is to get; n.again is set if something is left that the provider has no
// room for. Until the first message has arrived there is no second one: some providers lose
// messages, or their order, while they set up the connection.
func (p *peer) push(n *node) {
	for p.busy() && p.dead == nil {
		if p.posted >= maxPosted || !p.ready && p.posted > 0 {
			break
		}
		s := p.next(n)
		if s == nil {
			break
		}
		if !p.known {
			to, err := n.f.insert([]byte(p.blob))
			if err != nil {
				n.release(s)
				p.fail(n, err)
				return
			}
			p.to, p.known = to, true
			n.inserted++
		}
		switch err := n.f.send(s, p.to); err {
		case nil:
			s.peer = p
			p.posted++
			p.taken(s)
			p.stuck = time.Time{}
		case errAgain:
			if s.kind != kindData {
				n.release(s)
			}
			p.wait()
			n.again = true
			return
		default:
			if s.kind != kindData {
				n.release(s)
			}
			p.fail(n, err)
			return
		}
	}
	if p.posted > 0 && p.dead == nil {
		p.wait()
	}
}

func (p *peer) wait() {
	if p.stuck.IsZero() {
		p.stuck = time.Now()
	}
}

// next returns the next message to the peer, or nil. It stays where it is until taken.
func (p *peer) next(n *node) *slot {
	if len(p.refusals) > 0 {
		s := n.slot(0)
		if s != nil {
			r := p.refusals[0]
			s.kind, s.len = kindRefuse, headSize
			head{kind: kindRefuse, to: r.number, value: r.why}.put(s.data)
		}
		return s
	}
	for len(p.queue) > 0 {
		s, more := p.queue[0].next()
		if s != nil || more {
			return s
		}
		p.queue[0].queued = false
		p.queue = p.queue[1:]
	}
	return nil
}

// taken removes what next has returned. Links take turns.
func (p *peer) taken(s *slot) {
	if s.kind == kindRefuse {
		p.refusals = p.refusals[1:]
		return
	}
	l := p.queue[0]
	s.link = l
	l.took(s)
	p.queue = append(p.queue[1:], l)
}

func (p *peer) fail(n *node, err error) {
	if p.dead == nil {
		p.dead = err
	}
	p.refusals, p.stuck = nil, time.Time{}
	for _, l := range n.streams {
		if l.peer == p {
			l.lost(err)
		}
	}
	for _, l := range p.queue {
		l.queued = false
	}
	p.queue = nil
	p.idle = time.Now()
}

// tick drops a peer that nobody needs, some time after its last link: what it has sent before
// may still come. One to which nothing can be sent is given up.
func (p *peer) tick(n *node, now time.Time) {
	if !p.stuck.IsZero() && now.Sub(p.stuck) > n.set.patience() {
		p.fail(n, errSilent)
	}
	gone := p.links == 0 && !p.idle.IsZero() && now.Sub(p.idle) > removeAfter || p.dead != nil
	if gone && p.posted == 0 && p.reading == 0 {
		p.drop(n)
	}
}

// drop forgets a peer to which nothing is under way.
func (p *peer) drop(n *node) {
	if p.known && (!n.f.shares() || n.arrived != nil) { // see forget
		n.f.remove(p.to)
	}
	if n.peers[p.blob] == p {
		delete(n.peers, p.blob)
	}
}
