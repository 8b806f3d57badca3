//go:build cgo && !386 && !arm

package main

import (
	"unsafe"

	"github.com/openimpi/impi/core/mpi"
)

// retained has copies of the arguments of a persistent collective operation, as the program may
// free or change them once it has the request. Wrong arguments are not copied: the operation
// reports them.
type retained struct {
	c     *commObject // a duplicate, so that members may start several operations in different orders
	own   bool        // c is a duplicate, to be freed
	types []uintptr
	ops   []uintptr
	words [][]int64 // copies of arrays, in C's layout
}

func retain(c *commObject) (*retained, error) {
	t, err := c.Twin()
	if err != nil {
		return nil, err
	}
	if t == nil {
		return &retained{c: c}, nil // members of another MPI library match starts in their order, so a duplicate would not help
	}
	return &retained{c: &commObject{Comm: t, object: object{sort: c.sort, handle: c.handle}, session: c.session}, own: true}, nil
}

// datatype returns a handle of a duplicate of a datatype.
func (k *retained) datatype(h uintptr) uintptr {
	if h < datatypes || typeOf(h) == nil {
		return h
	}
	dup, err := mpi.TypeDup(typeOf(h))
	if err != nil {
		return h
	}
	own := newType(dup)
	k.types = append(k.types, own)
	return own
}

// op returns a handle of an operation that stays valid.
func (k *retained) op(h uintptr) uintptr {
	p := ops.Get(h)
	if p == nil {
		return h
	}
	own := ops.Add(*p)
	k.ops = append(k.ops, own)
	return own
}

// array returns the address of a copy of n elements of size bytes.
func (k *retained) array(p uintptr, n, size int) uintptr {
	from, err := array[byte]("", p, n*size)
	if err != nil || n == 0 {
		return p
	}
	words := make([]int64, (len(from)+7)/8)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(from)), from)
	k.words = append(k.words, words)
	return uintptr(unsafe.Pointer(unsafe.SliceData(words)))
}

// counts is array for ints, or for MPI_Counts if which is 1.
func (k *retained) counts(p uintptr, n int, which int32) uintptr {
	return k.array(p, n, 4+4*int(which))
}

func (k *retained) side(a side, n int) side {
	switch {
	case a.form < varied:
		a.t = k.datatype(a.t)
	case a.buf == inPlace || !a.matters(k.c):
	case a.form == varied:
		a.counts, a.displs, a.t = k.counts(a.counts, n, a.wideCounts), k.counts(a.displs, n, a.wideDispls), k.datatype(a.t)
	case a.form == apart:
		a.counts, a.displs, a.t = k.counts(a.counts, n, a.wideCounts), k.counts(a.displs, n, a.wideDispls), k.array(a.t, n, 8)
		if ts, err := array[uintptr]("", a.t, n); err == nil {
			for i := range ts {
				ts[i] = k.datatype(ts[i])
			}
		}
	}
	return a
}

// The functions below correspond to those of coll.go, with copied arguments.

func (k *retained) nothing() argumentReader { return nothing() }

func (k *retained) exchange(send, recv side) argumentReader {
	n := k.c.partners()
	return exchange(k.side(send, n), k.side(recv, n))
}

func (k *retained) neighbors(send, recv side) argumentReader {
	in, out, _ := k.c.neighbours() // the operation reports that there is no topology
	return neighbors(k.side(send, out), k.side(recv, in))
}

func (k *retained) bcast(buf uintptr, count int64, t uintptr, root int32) argumentReader {
	return bcast(buf, count, k.datatype(t), root)
}

func (k *retained) reduce(sbuf, rbuf uintptr, count int64, t, op uintptr, root int32) argumentReader {
	return reduce(sbuf, rbuf, count, k.datatype(t), k.op(op), root)
}

func (k *retained) combine(sbuf, rbuf uintptr, count int64, t, op uintptr) argumentReader {
	return combine(sbuf, rbuf, count, k.datatype(t), k.op(op))
}

func (k *retained) reduceScatterBlock(sbuf, rbuf uintptr, count int64, t, op uintptr) argumentReader {
	return reduceScatterBlock(sbuf, rbuf, count, k.datatype(t), k.op(op))
}

func (k *retained) reduceScatter(sbuf, rbuf, counts, t, op uintptr, which int32) argumentReader {
	return reduceScatter(sbuf, rbuf, k.counts(counts, k.c.Size(), which), k.datatype(t), k.op(op), which)
}

func (k *retained) free() {
	for _, h := range k.types {
		if t := typeOf(h); t != nil {
			typeHandles.Delete(t)
			_ = t.Free() // no other code has the handle
			types.Free(h)
		}
	}
	for _, h := range k.ops {
		ops.Free(h)
	}
	if k.own {
		_ = k.c.Comm.Free()
	}
	*k = retained{}
}
