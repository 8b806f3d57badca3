package collective

import (
	"fmt"
	"unsafe"

	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/internal/engine/proc"
)

// operation sets the operation of a reduction of items of t. A user's operation for any datatype
// gets items with their gaps, as they are in the program's memory (MPI-4.1, 6.9.5).
func (s *staging) operation(op Op, t *proc.Datatype) {
	if s.err == nil {
		s.err = op.CheckType(t)
	}
	if s.err != nil {
		return
	}
	s.call.op = op
	if k, ok := t.Homogeneous(); ok && !s.typed {
		s.call.Kind = k // a member without items must have the same kind
	}
	if op.Typed() {
		s.call.op = packedOp(op, t, s.form(t))
	}
}

// packedOp returns a user's operation for any datatype as one for operands in form f, of items of
// t.
func packedOp(op Op, t *proc.Datatype, f form) Op {
	direct := f.rep == datatype.Native && t.Contig()
	return datatype.NewWholeOp(func(in, inout []byte, n int, k datatype.Kind) {
		items := n * k.Size() / f.unit
		if items == 0 {
			return
		}
		if direct {
			_ = op.ApplyType(unsafe.Pointer(&in[0]), unsafe.Pointer(&inout[0]), t, items) // op takes all types
			return
		}
		a, b := unpacked(t, f.rep, items, in), unpacked(t, f.rep, items, inout)
		_ = op.ApplyType(a, b, t, items)
		t.Encode(f.rep, inout, b, items, 0)
	}, op.Commutative())
}

// unpacked unpacks items with their gaps into memory of its own, and returns their origin.
func unpacked(t *proc.Datatype, rep datatype.Representation, items int, packed []byte) unsafe.Pointer {
	lo, hi, err := t.Span(items)
	if err != nil {
		panic("mpi: " + err.Error()) // the program has this many items in memory, so the size is valid
	}
	lo, hi = min(lo, 0), max(hi, 1) // the origin must be inside the memory
	mem := aligned(int(hi - lo))
	origin := unsafe.Add(unsafe.Pointer(unsafe.SliceData(mem)), -lo)
	t.Decode(rep, origin, items, 0, packed, nil)
	return origin
}

// operands stages the buffers of a reduction. result says that this member gets the result, in
// recv.
func (s *staging) operands(send, recv proc.Buffer, op Op, result bool) {
	in := result && s.inPlace(&send)
	t := send.Datatype()
	if in {
		t = recv.Datatype()
	}
	if s.err == nil && !in {
		s.err = send.Check()
	}
	s.operation(op, t)
	if result {
		s.call.recv = s.recv(recv, true)
	}
	if !in {
		s.call.Send = s.send(send)
	}
}

func (s *staging) reduce(send, recv proc.Buffer, op Op, root int) {
	is, other := s.root(root)
	switch {
	case s.err == nil && is && !other: // on an intercommunicator, the root has no operand
		s.operation(op, recv.Datatype())
		s.call.recv = s.recv(recv, false)
	case s.err == nil && !other:
		s.call.op, s.call.Send, s.call.Kind = op, nothing, takenBy(op)
	default:
		s.operands(send, recv, op, is)
	}
}

// takenBy returns a kind that op is defined for (MPI-4.1, 6.9.2), for a member without operands.
func takenBy(op Op) datatype.Kind {
	for k := datatype.Byte; k.Valid(); k++ {
		if op.Check(k) == nil {
			return k
		}
	}
	return datatype.Byte
}

// combine stages the reductions in which all members get a result: Allreduce, Scan, Exscan and
// ReduceScatterBlock.
func (s *staging) combine(send, recv proc.Buffer, op Op) {
	switch s.call.What {
	case scan:
		s.only("Scan")
	case exscan:
		s.only("Exscan")
	default:
	}
	s.operands(send, recv, op, true)
}

func (s *staging) reduceScatter(send, recv proc.Buffer, counts []int, op Op) {
	s.operands(send, recv, op, true)
	for i, n := range counts {
		if n < 0 {
			s.fail(fmt.Errorf("%w: %d items for rank %d", coll.ErrCount, n, i))
		}
	}
	s.call.counts = counts
	if s.err == nil {
		t := recv.Datatype()
		f := s.form(t)
		s.call.counts = scaled(counts, f.unit/f.kind.Size())
	}
}
