package script

import (
	"fmt"

	"github.com/openimpi/impi/core/mpi"
)

type vector interface {
	size() int
	slice(from, to int) vector // shares the memory
	clone() vector
	fill(seed uint64)    // sets elements that identify seed and index
	factors(seed uint64) // as fill, for OpProd
	sum(n int) uint64    // returns a hash of the first n elements
	copy(at int, from vector)
	combine(op Op, higher vector) // sets v to v ∘ higher, computed here
	differs(want vector) string   // returns the first difference, or ""
	unlike(seed uint64) string    // returns the first difference from what fill writes, or ""

	send(m Mode, c *mpi.Comm, dst, tag int) error
	isend(m Mode, c *mpi.Comm, dst, tag int) (mpi.Request, error)
	sendInit(m Mode, c *mpi.Comm, dst, tag int) (mpi.Request, error)
	recv(c *mpi.Comm, src, tag int) (mpi.Status, error)
	irecv(c *mpi.Comm, src, tag int) (mpi.Request, error)
	recvInit(c *mpi.Comm, src, tag int) (mpi.Request, error)
	mrecv(m *mpi.Message) (mpi.Status, error)
	imrecv(m *mpi.Message) (mpi.Request, error)
	sendrecv(c *mpi.Comm, dst, stag int, in vector, src, rtag int) (mpi.Status, error)
	replace(c *mpi.Comm, dst, stag, src, rtag int) (mpi.Status, error)
	count(st mpi.Status) (n int, whole bool)
	// collective calls x.Call with v as the send buffer, or the only one.
	collective(c *mpi.Comm, x *Collective, recv vector, root int, l layout) error
}

// layout is how the buffers of a collective operation are divided: for Alltoallv first the parts of
// the send buffer and then those of the receive buffer.
type layout struct{ counts, displs, rcounts, rdispls []int }

type elements[T mpi.Type] struct {
	a   *algebra[T]
	ops map[Op]mpi.Op
	v   []T
}

func (e *elements[T]) with(v []T) *elements[T] { return &elements[T]{a: e.a, ops: e.ops, v: v} }
func (e *elements[T]) size() int               { return len(e.v) }
func (e *elements[T]) slice(from, to int) vector {
	return e.with(e.v[from:to:to])
}

func (e *elements[T]) clone() vector { return e.with(append([]T{}, e.v...)) }

func (e *elements[T]) fill(seed uint64) {
	for i := range e.v {
		e.v[i] = e.a.of(mix(seed + uint64(i)))
	}
}

func (e *elements[T]) factors(seed uint64) {
	for i := range e.v {
		e.v[i] = e.a.factor(mix(seed + uint64(i)))
	}
}

func (e *elements[T]) sum(n int) uint64 {
	h := uint64(n) + 1
	for _, v := range e.v[:n] {
		h = (h ^ e.a.bits(v)) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return h
}

func (e *elements[T]) copy(at int, from vector) { copy(e.v[at:], from.(*elements[T]).v) }

func (e *elements[T]) combine(op Op, higher vector) {
	for i, v := range higher.(*elements[T]).v {
		if f := e.a.user[op]; f != nil {
			e.v[i] = f(e.v[i], v)
		} else {
			e.v[i] = e.a.combine(op, e.v[i], v)
		}
	}
}

func (e *elements[T]) differs(want vector) string {
	w := want.(*elements[T]).v
	if len(e.v) != len(w) {
		return fmt.Sprintf("%d elements, want %d", len(e.v), len(w))
	}
	for i, v := range e.v {
		if v != w[i] {
			return fmt.Sprintf("element %d of %d is %v, want %v", i, len(w), v, w[i])
		}
	}
	return ""
}

func (e *elements[T]) unlike(seed uint64) string {
	for i, v := range e.v {
		if w := e.a.of(mix(seed + uint64(i))); v != w {
			return fmt.Sprintf("element %d of %d is %v, want %v", i, len(e.v), v, w)
		}
	}
	return ""
}

func (e *elements[T]) count(st mpi.Status) (n int, whole bool) { return mpi.Count[T](st) }

func (e *elements[T]) send(m Mode, c *mpi.Comm, dst, tag int) error {
	return [...]func(*mpi.Comm, []T, int, int) error{mpi.Send[T], mpi.Ssend[T], mpi.Bsend[T], mpi.Rsend[T]}[m](c, e.v, dst, tag)
}

func (e *elements[T]) isend(m Mode, c *mpi.Comm, dst, tag int) (mpi.Request, error) {
	calls := [...]func(*mpi.Comm, []T, int, int) (mpi.Request, error){mpi.Isend[T], mpi.Issend[T], mpi.Ibsend[T], mpi.Irsend[T]}
	return calls[m](c, e.v, dst, tag)
}

func (e *elements[T]) sendInit(m Mode, c *mpi.Comm, dst, tag int) (mpi.Request, error) {
	calls := [...]func(*mpi.Comm, []T, int, int) (mpi.Request, error){
		mpi.SendInit[T], mpi.SsendInit[T], mpi.BsendInit[T], mpi.RsendInit[T],
	}
	return calls[m](c, e.v, dst, tag)
}

func (e *elements[T]) recv(c *mpi.Comm, src, tag int) (mpi.Status, error) {
	return mpi.Recv(c, e.v, src, tag)
}

func (e *elements[T]) irecv(c *mpi.Comm, src, tag int) (mpi.Request, error) {
	return mpi.Irecv(c, e.v, src, tag)
}

func (e *elements[T]) recvInit(c *mpi.Comm, src, tag int) (mpi.Request, error) {
	return mpi.RecvInit(c, e.v, src, tag)
}

func (e *elements[T]) mrecv(m *mpi.Message) (mpi.Status, error)   { return mpi.Mrecv(m, e.v) }
func (e *elements[T]) imrecv(m *mpi.Message) (mpi.Request, error) { return mpi.Imrecv(m, e.v) }

func (e *elements[T]) sendrecv(c *mpi.Comm, dst, stag int, in vector, src, rtag int) (mpi.Status, error) {
	return mpi.Sendrecv(c, e.v, dst, stag, in.(*elements[T]).v, src, rtag)
}

func (e *elements[T]) replace(c *mpi.Comm, dst, stag, src, rtag int) (mpi.Status, error) {
	return mpi.SendrecvReplace(c, e.v, dst, stag, src, rtag)
}

func (e *elements[T]) collective(c *mpi.Comm, x *Collective, recv vector, root int, l layout) error {
	var in []T
	if recv != nil {
		in = recv.(*elements[T]).v
	}
	if x.Call.reduces() {
		return e.reduction(c, x, in, root)
	}
	switch x.Call {
	case Bcast:
		return mpi.Bcast(c, e.v, root)
	case Gather:
		return mpi.Gather(c, e.v, in, root)
	case Gatherv:
		return mpi.Gatherv(c, e.v, in, l.counts, l.displs, root)
	case Scatter:
		return mpi.Scatter(c, e.v, in, root)
	case Scatterv:
		return mpi.Scatterv(c, e.v, l.counts, l.displs, in, root)
	case Allgather:
		return mpi.Allgather(c, e.v, in)
	case Allgatherv:
		return mpi.Allgatherv(c, e.v, in, l.counts, l.displs)
	case Alltoall:
		return mpi.Alltoall(c, e.v, in)
	case Alltoallv:
		return mpi.Alltoallv(c, e.v, l.counts, l.displs, in, l.rcounts, l.rdispls)
	default: // Barrier
		return mpi.Barrier(c)
	}
}

func (e *elements[T]) reduction(c *mpi.Comm, x *Collective, in []T, root int) error {
	op := e.ops[x.Op]
	switch x.Call {
	case Reduce:
		return mpi.Reduce(c, e.v, in, op, root)
	case Allreduce:
		return mpi.Allreduce(c, e.v, in, op)
	case ReduceScatter:
		return mpi.ReduceScatter(c, e.v, in, x.Counts, op)
	case ReduceScatterBlock:
		return mpi.ReduceScatterBlock(c, e.v, in, op)
	case Exscan:
		return mpi.Exscan(c, e.v, in, op)
	default: // Scan
		return mpi.Scan(c, e.v, in, op)
	}
}
