package fabric

import (
	"fmt"

	"github.com/openimpi/impi/plugins/sdk/support/rdma"
)

// maxFetches is how many parts of a message a side asks for before it has the first.
const maxFetches = 4

// fetching is what of offered messages goes by messages of the connection, as memory for reading it
// cannot be registered.
type fetching struct {
	slow    []*slowRead  // of this side, oldest first: the first one is fetched
	scratch []byte       // where parts come while there are some
	wanted  []fetchOwing // of the peer
}

// slowRead is one Read of the proc that is fetched.
type slowRead struct {
	*read
	into   []byte
	at     uint64 // where in the message it begins
	asked  int    // bytes
	copied int
}

// fetchOwing is a part that the peer has asked for.
type fetchOwing struct {
	message, at uint64
	data        []byte
}

// fetch begins a read into memory that is not registered.
func (p *pump) fetch(r *read, into []byte, at uint64) {
	if p.scratch == nil {
		p.scratch = make([]byte, p.port.Shape().SlotSize)
	}
	p.slow = append(p.slow, &slowRead{read: r, into: into, at: at})
}

// ask asks the peer for the next parts of the first read.
func (p *pump) ask() (moved bool, err error) {
	if len(p.slow) == 0 {
		return false, nil
	}
	x := p.slow[0]
	for x.asked < len(x.into) && x.asked-x.copied < maxFetches*p.pieceSize() {
		n := min(len(x.into)-x.asked, p.pieceSize())
		ok, err := p.post(header{kind: asks, number: x.message, offset: x.at + uint64(x.asked), length: uint64(n)}, nil)
		if !ok || err != nil {
			return moved, err
		}
		x.asked, moved = x.asked+n, true
	}
	return moved, nil
}

// fetched takes note of a part that the peer wants.
func (p *pump) fetched(h *header) error {
	for _, x := range p.loans {
		if x.message == 0 || x.message != h.number {
			continue
		}
		size := uint64(len(x.data))
		if h.offset > size || h.length == 0 || h.length > size-h.offset || h.length > uint64(p.pieceSize()) || len(p.wanted) >= maxFetches {
			break
		}
		p.wanted = append(p.wanted, fetchOwing{h.number, h.offset, x.data[h.offset:][:h.length]})
		return nil
	}
	return fmt.Errorf("%w: it wants %d bytes at %d of message %d, which was not offered or is shorter, beside %d others", errWire, h.length, h.offset, h.number, len(p.wanted))
}

// owes reports whether the peer has asked for parts of a message that it has not been sent.
func (p *pump) owes(message uint64) bool {
	for _, x := range p.wanted {
		if x.message == message {
			return true
		}
	}
	return false
}

// sendFetched sends what the peer has asked for.
func (p *pump) sendFetched() (moved bool, err error) {
	for len(p.wanted) > 0 {
		x := p.wanted[0]
		if ok, err := p.post(header{kind: piece, number: x.message, offset: x.at, length: uint64(len(x.data))}, x.data); !ok || err != nil {
			return moved, err
		}
		p.wanted, moved = append(p.wanted[:0], p.wanted[1:]...), true
	}
	return moved, nil
}

// arrived takes a part, which is in p.keys and p.scratch.
func (p *pump) arrived(h *header) error {
	if len(p.slow) == 0 || p.slow[0].copied == p.slow[0].asked {
		return fmt.Errorf("%w: it sends a part of message %d that was not asked for", errWire, h.number)
	}
	x := p.slow[0]
	want := min(x.asked-x.copied, p.pieceSize())
	if h.number != x.message || h.offset != x.at+uint64(x.copied) || h.length != uint64(want) {
		return fmt.Errorf("%w: it sends %d bytes at %d of message %d, asked for were %d at %d of message %d",
			errWire, h.length, h.offset, h.number, want, x.at+uint64(x.copied), x.message)
	}
	into := x.into[x.copied:][:want]
	if n := copy(into, p.keys[:min(maxKey, want)]); n < want {
		copy(into[n:], p.scratch)
	}
	if x.copied += want; x.copied < len(x.into) {
		return nil
	}
	p.slow = append(p.slow[:0], p.slow[1:]...)
	p.under--
	p.cache.unuse(x.entry)
	return p.port.Complete(rdma.Entry{Kind: rdma.WasRead, Number: x.number})
}
