package message

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/openimpi/impi/core/flow"
	"github.com/openimpi/impi/core/wire"
)

// peers has the state of the procs with which this one has exchanged messages. In a large
// job those are few, such as neighbours in trees, so it is a small hash table with open
// addressing, at most half full, instead of an array.
type peers struct {
	slots []*peer // length is a power of two
	shift uint8   // number of bits by which a hash is shifted to get an index in slots
	made  []*peer // in the order of creation
}

const firstPeers = 16

// find returns the state of a peer, nil if it has none yet.
func (t *peers) find(i Peer) *peer {
	mask := uint32(len(t.slots) - 1)
	for at := hash(i) >> (t.shift & 31); ; at++ {
		if p := t.slots[at&mask]; p == nil || p.index == i {
			return p
		}
	}
}

// hash spreads regular distances, as those of trees, over the high bits.
func hash(i Peer) uint32 { return uint32(i) * 0x9e3779b1 }

func (t *peers) add(p *peer) {
	t.made = append(t.made, p)
	if 2*len(t.made) <= len(t.slots) {
		t.put(p)
		return
	}
	t.rebuild(max(firstPeers, 2*len(t.slots)))
}

func (t *peers) rebuild(n int) {
	t.slots = make([]*peer, n)
	t.shift = uint8(32 - bits.Len(uint(n-1)))
	for _, q := range t.made {
		t.put(q)
	}
}

func (t *peers) remove(gone func(p *peer) bool) {
	t.made = slices.DeleteFunc(t.made, gone)
	t.rebuild(len(t.slots))
}

func (t *peers) sorted() []*peer {
	return slices.SortedFunc(slices.Values(t.made), func(a, b *peer) int { return cmp.Compare(a.index, b.index) })
}

func (t *peers) put(p *peer) {
	at := hash(p.index) >> t.shift
	for t.slots[at&uint32(len(t.slots)-1)] != nil {
		at++
	}
	t.slots[at&uint32(len(t.slots)-1)] = p
}

func (e *procs) peer(i Peer) *peer {
	if p := e.peers.find(i); p != nil {
		return p
	}
	return e.newPeer(i)
}

func (e *procs) newPeer(i Peer) *peer {
	proc, as := e.identity(i)
	p := &peer{index: i, proc: proc, as: as, window: flow.New(as.limits)}
	e.allow(p)
	e.peers.add(p)
	return p
}

// Proc returns the identity that packets to and from a peer contain (IMPI ch.3, Packet Format).
func (e *procs) Proc(p Peer) wire.Proc {
	proc, _ := e.identity(p)
	return proc
}

// Unreachable returns the reason why p cannot be reached, or nil if it can, as far as is known.
func (e *procs) Unreachable(p Peer) error {
	if q := e.peers.find(p); q != nil {
		return q.down
	}
	return nil
}

// SomeUnreachable reports whether Unreachable returns an error for a peer.
func (e *procs) SomeUnreachable() bool { return e.lost > 0 }

// SentTo returns the number of messages whose first packet has left for p, or waits to leave.
func (e *procs) SentTo(p Peer) uint64 {
	q := e.peers.find(p)
	switch {
	case q == nil:
		return 0
	case q.fastBoxes != nil:
		return q.sent + q.boxed + q.fastBoxes.boxes.FastBoxesSent()
	}
	return q.sent + q.boxed
}

// BytesTo returns the number of data bytes of these messages, except those that C code has sent by
// itself.
func (e *procs) BytesTo(p Peer) uint64 {
	if q := e.peers.find(p); q != nil {
		return q.bytes
	}
	return 0
}
