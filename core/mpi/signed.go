package mpi

import (
	"fmt"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
)

// With checkVariable the packets of messages between procs of this library say what elements were
// sent: pk_count how many, pk_dtype a hash of their sequence. The receive compares that with the
// beginning of its own sequence. So all messages of programs have streams then, which know it, and
// none is a fast-box message, which has no room.

// sign is what a message to peer says of b.
func (p *process) sign(peer message.Peer, b *Buffer) (count int64, dtype uint64) {
	if !p.kin(peer) {
		k, _ := b.typ.Kind()
		return int64(b.count), uint64(k)
	}
	s := b.typ.Signature(b.count)
	return s.Len, s.Bits()
}

// kin tells whether peer is a proc of this library.
func (p *process) kin(peer message.Peer) bool {
	return peer >= 0 && (p.stranger(peer) || !p.foreignClient(p.clients().Of(comm.Proc(peer))))
}

// compared gives the error of a message that has other elements than items, if its sender has
// said what they are.
func (p *process) compared(r *message.Request, items *stream) error {
	if !p.check || items == nil {
		return nil
	}
	n, dtype := r.Sent()
	m := r.Result()
	sent, ok := datatype.SignatureOf(n, dtype)
	if !ok || !p.kin(m.Peer) {
		return nil
	}
	t, count := items.buf.typ, items.buf.count
	switch want, fits := t.Prefix(count, max(n, 0)); {
	case n == 0, n > 0 && fits && sent.Matches(want):
		return nil
	case sent.Any(), t.Signature(count).Any():
		return nil
	}
	return fmt.Errorf("%w: rank %d sent %v with tag %d, and the receive is for %s", ErrSignature, m.Source, sent, m.Tag, t.Sequence(count))
}
