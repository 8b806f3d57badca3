//go:build cgo && !386 && !arm

package main

import (
	"unsafe"

	"github.com/openimpi/impi/core/mpi"
)

// retained keeps what a persistent collective operation is told of from the change that
// the program may make once the request is there: it has handles and arrays of its own.
// What is wrong is left as it is, for the operation to find out.
type retained struct {
	c     *commObject // of its own, so that members may start several operations in different orders
	own   bool        // c is
	types []uintptr
	ops   []uintptr
	words [][]int64 // arrays, as C sees them
}

// retain makes the retained of an operation on c.
func retain(c *commObject) (*retained, error) {
	t, err := c.Twin()
	if err != nil {
		return nil, err
	}
	if t == nil {
		return &retained{c: c}, nil // with another MPI library starts are matched in their order
	}
	return &retained{c: &commObject{Comm: t, object: object{sort: c.sort, handle: c.handle}, session: c.session}, own: true}, nil
}

// t gives a handle for a datatype that stays.
func (k *retained) t(h uintptr) uintptr {
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

// op is t for operations.
func (k *retained) op(h uintptr) uintptr {
	p := ops.Get(h)
	if p == nil {
		return h
	}
	own := ops.Add(*p)
	k.ops = append(k.ops, own)
	return own
}

// array gives the address of a copy of n elements of size bytes.
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

// counts is array of ints, or of MPI_Counts if which is 1.
func (k *retained) counts(p uintptr, n int, which int32) uintptr {
	return k.array(p, n, 4+4*int(which))
}

// blocks keeps the arrays of n blocks that have a datatype.
func (k *retained) blocks(a blocks, n int) blocks {
	if a.buf != inPlace {
		a.counts, a.displs, a.t = k.counts(a.counts, n, a.which), k.counts(a.displs, n, a.which), k.t(a.t)
	}
	return a
}

// rooted is blocks of what matters at the root alone.
func (k *retained) rooted(a blocks, root int32) blocks {
	if is, _ := k.c.role(root); !is {
		return a
	}
	return k.blocks(a, k.c.partners())
}

// pieces is blocks with a datatype each. wide is as for blocks.pieces.
func (k *retained) pieces(a blocks, n int, wide bool) blocks {
	if a.buf == inPlace {
		return a
	}
	which := a.which
	if wide {
		which = 1
	}
	a.counts, a.displs, a.t = k.counts(a.counts, n, a.which), k.counts(a.displs, n, which), k.array(a.t, n, 8)
	if ts, err := array[uintptr]("", a.t, n); err == nil {
		for i := range ts {
			ts[i] = k.t(ts[i])
		}
	}
	return a
}

// indegree is how many neighbours send to this proc; 0 if there can be none.
func (k *retained) indegree() int {
	in, _, _ := k.c.neighbours()
	return in
}

// outdegree is how many neighbours this proc sends to; 0 if there can be none.
func (k *retained) outdegree() int {
	_, out, _ := k.c.neighbours()
	return out
}

// free ends all that is kept.
func (k *retained) free() {
	for _, h := range k.types {
		if t := typeOf(h); t != nil {
			typeHandles.Delete(t)
			_ = t.Free() // nobody can have freed it
			types.Free(h)
		}
	}
	for _, h := range k.ops {
		ops.Free(h)
	}
	if k.own {
		_ = k.c.Comm.Free() // as above
	}
	*k = retained{}
}
