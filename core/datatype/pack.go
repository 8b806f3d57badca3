package datatype

import (
	"fmt"
	"math/bits"
	"unsafe"
)

// Pack writes a part of the stream of count items at base in the native representation: from byte
// off on, as many bytes as dst holds and the stream has. It returns how many those are, and takes
// no longer for a large off. The type has been committed (MPI-4.1, 5.1.9); it may have been freed
// since.
//
// base is the origin of the first item, not the lowest byte; the memory that Span returns must
// exist.
func (d *def) Pack(dst []byte, base unsafe.Pointer, count int, off int64) int {
	m := mover{buf: dst, mode: packing}
	return m.items(d.prog.Load().bytes, d, base, count, off)
}

// Unpack is the inverse of Pack: src is the stream starting at byte off. It returns the number of
// bytes of src that it has used. Parts may come in any order.
func (d *def) Unpack(base unsafe.Pointer, count int, off int64, src []byte) int {
	m := mover{buf: src, mode: unpacking}
	return m.items(d.prog.Load().bytes, d, base, count, off)
}

// Encode is Pack with the stream in r. A part may begin and end within elements.
func (d *def) Encode(r Representation, dst []byte, base unsafe.Pointer, count int, off int64) int {
	p := d.prog.Load()
	if d.identity(r) {
		m := mover{buf: dst, mode: packing}
		return m.items(p.bytes, d, base, count, off)
	}
	m := mover{buf: dst, mode: encoding, rep: r, class: r.class()}
	return m.items(p.kinds, d, base, count, off)
}

// Carry holds the first bytes of an element whose other bytes come with the next part. Its zero
// value is empty. Each stream that is decoded needs a Carry of its own.
type Carry struct {
	b [40]byte
	n int
}

// Decode is the inverse of Encode: src is the stream in r starting at byte off. If parts end within
// elements they must come in the order of the stream, and carry keeps the first bytes of such an
// element. carry may be nil if no part ends within an element; otherwise Decode stops before the
// incomplete element.
func (d *def) Decode(r Representation, base unsafe.Pointer, count int, off int64, src []byte, carry *Carry) int {
	p := d.prog.Load()
	if d.identity(r) {
		m := mover{buf: src, mode: unpacking}
		return m.items(p.bytes, d, base, count, off)
	}
	m := mover{buf: src, mode: decoding, rep: r, class: r.class(), carry: carry}
	return m.items(p.kinds, d, base, count, off)
}

// Identity reports whether the stream in r is equal to the native one.
func (t *Type) Identity(r Representation) bool {
	return defOf(t).identity(r)
}

func (d *def) identity(r Representation) bool {
	return r == Native || d.kinds&^identities[r] == 0
}

// identities has, for each representation, the kinds that it does not change, a bit for each.
var identities = func() (all [representations]uint64) {
	for r := range all {
		for k := range kinds {
			if k.Valid() && Representation(r).Identity(k) {
				all[r] |= 1 << k
			}
		}
	}
	return all
}()

// Run reports whether count items are one contiguous piece of memory in the native representation,
// and returns its offset from the origin in bytes, disp. Its length is count times Packed(Native).
func (d *def) Run(count int) (disp int64, ok bool) {
	x := d.prog.Load().bytes
	if x == nil || count <= 0 {
		return 0, true
	}
	return x.disp, x.op == opRun && (count == 1 || x.n == d.extent())
}

// Contig reports whether consecutive items are their own native stream: Pack only copies,
// from the origin on.
func (d *def) Contig() bool {
	disp, ok := d.Run(2)
	return ok && disp == 0 && d.extent() == d.wire[classMemory]
}

// Homogeneous returns the kind of the elements, and reports whether all of them are of one kind.
func (t *Type) Homogeneous() (Kind, bool) {
	set := defOf(t).kinds
	if bits.OnesCount64(set) != 1 {
		return Invalid, false
	}
	return Kind(bits.TrailingZeros64(set)), true
}

// PackSize returns the number of bytes that Pack writes for count items, which is MPI_Pack_size
// (MPI-4.1, 5.2).
func (t *Type) PackSize(count int) (int64, error) { return packSize(t, Native, count) }

func packSize(t *Type, r Representation, count int) (int64, error) {
	if count < 0 {
		return 0, fmt.Errorf("datatype: %w: %d", ErrCount, count)
	}
	var c calc
	n := c.mul(int64(count), t.Packed(r))
	if c.over {
		return 0, fmt.Errorf("datatype: %w: %d items of %v", ErrTooLarge, count, t)
	}
	return n, nil
}
