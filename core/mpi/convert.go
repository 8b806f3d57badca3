package mpi

import (
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
)

// Type are the types that messages are made of: Go's numbers, bool, what is made
// from them, and Pair.
type Type = datatype.Element

// Pair is what MinLoc and MaxLoc reduce: a value and where it was found.
type Pair[V datatype.PairValue] = datatype.Pair[V]

// Data goes to a peer as that peer's representation says. Among our own procs
// on machines of one byte order that is memory as it stands, and the functions
// below cost a comparison.

// unconverted tells that nobody's elements of k need any conversion.
func (p *process) unconverted(k datatype.Kind) bool { return p.plain>>k&1 != 0 }

// foreign gives how k's elements travel to and from peer, and whether that
// differs from how they lie in memory.
func (p *process) foreign(peer message.Peer, k datatype.Kind) (datatype.Representation, bool) {
	if p.unconverted(k) || peer < 0 {
		return datatype.Native, false
	}
	rep := p.data[peer]
	return rep, !rep.Identity(k)
}

// pack gives b as peer wants it: b itself among our own kind of machine.
func (p *process) pack(peer message.Peer, k datatype.Kind, b []byte) ([]byte, error) {
	rep, differs := p.foreign(peer, k)
	if !differs {
		return b, nil
	}
	n := len(b) / k.Size()
	packed := make([]byte, n*rep.Size(k))
	return packed, rep.Encode(packed, b, k, n)
}

// landing gives the memory to receive elements of k into: b itself, unless
// somebody who may send them needs another size for them.
func (p *process) landing(b []byte, k datatype.Kind) []byte {
	if p.unconverted(k) {
		return b
	}
	size := k.Size()
	for _, rep := range p.kinds {
		size = max(size, rep.Size(k))
	}
	same := size == k.Size()
	for _, rep := range p.kinds {
		same = same && rep.Size(k) == size
	}
	if same {
		return b
	}
	return make([]byte, len(b)/k.Size()*size)
}

// landing is where a message arrives, and where it belongs.
type landing struct {
	kind   datatype.Kind
	buf    []byte // the user's
	landed []byte // what arrives there before conversion; mostly buf itself
}

// landed notes what landing has given; there is nothing to note, and nil, where
// nobody's need conversion.
func (p *process) landed(b, landed []byte, k datatype.Kind) *landing {
	if p.unconverted(k) {
		return nil
	}
	return &landing{k, b, landed}
}

// land converts what was received from peer, n bytes in to.landed, into to.buf,
// and gives its size there. Where landed is the larger, what does not fit is
// ErrTruncate.
func (p *process) land(peer message.Peer, to *landing, n int64) (int64, error) {
	k, b, landed := to.kind, to.buf, to.landed
	rep, differs := p.foreign(peer, k)
	if !differs {
		if len(b) > 0 && &b[0] != &landed[0] {
			copy(b, landed[:n])
		}
		return min(n, int64(len(b))), truncated(n > int64(len(b)))
	}
	came, room := int(n)/rep.Size(k), len(b)/k.Size()
	count := min(came, room)
	if err := rep.Decode(b, landed, k, count); err != nil {
		return int64(count * k.Size()), err
	}
	return int64(count * k.Size()), truncated(came > room)
}

func truncated(is bool) error {
	if is {
		return message.ErrTruncate
	}
	return nil
}
