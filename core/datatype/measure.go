package datatype

import (
	"fmt"
	"math"
	"math/bits"
)

// limit bounds all sizes and displacements, so that the sum of two never overflows.
const limit = 1 << 62

// calc does arithmetic and remembers whether a result was out of limits.
type calc struct{ over bool }

func (c *calc) add(a, b int64) int64 {
	s := a + b
	if (a > 0 && b > 0 && s < 0) || (a < 0 && b < 0 && s >= 0) || s > limit || s < -limit {
		c.over = true
		return 0
	}
	return s
}

func (c *calc) mul(a, b int64) int64 {
	hi, lo := bits.Mul64(magnitude(a), magnitude(b))
	if hi != 0 || lo > limit {
		c.over = true
		return 0
	}
	if (a < 0) != (b < 0) {
		return -int64(lo)
	}
	return int64(lo)
}

func magnitude(a int64) uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}

func (d *def) extent() int64 { return d.ub - d.lb }

func (d *def) named() bool { return d.combiner == CombinerNamed }

// edges are the bounds of what has been placed so far (MPI-4.1, 5.1.6): those set by Resized, the
// others, those of the elements alone, and those of the elements with their padding.
type edges struct {
	calc
	lo, hi [4]int64
	seen   [4]struct{ lo, hi bool }
}

const (
	plainEdges = iota
	markedEdges
	trueEdges
	memoryEdges
)

func (e *edges) low(which int, at int64) {
	if !e.seen[which].lo || at < e.lo[which] {
		e.seen[which].lo, e.lo[which] = true, at
	}
}

func (e *edges) high(which int, at int64) {
	if !e.seen[which].hi || at > e.hi[which] {
		e.seen[which].hi, e.hi[which] = true, at
	}
}

// place adds items of child at origins from first to last.
func (e *edges) place(child *def, first, last int64) {
	if child.elements > 0 {
		e.low(trueEdges, e.add(first, child.tlb))
		e.high(trueEdges, e.add(last, child.tub))
		e.high(memoryEdges, e.add(last, child.end))
	}
	switch {
	case child.marks&markLB != 0:
		e.low(markedEdges, e.add(first, child.lb))
	case child.elements > 0:
		e.low(plainEdges, e.add(first, child.lb))
	}
	switch {
	case child.marks&markUB != 0:
		e.high(markedEdges, e.add(last, child.ub))
	case child.elements > 0:
		e.high(plainEdges, e.add(last, child.ub))
	}
}

func (e *edges) block(child *def, disp, n int64) {
	far := e.add(disp, e.mul(n-1, child.extent()))
	e.place(child, min(disp, far), max(disp, far))
}

func (e *edges) grid(child *def, count, n, stride int64) {
	rows, row := e.mul(count-1, stride), e.mul(n-1, child.extent())
	e.place(child, e.add(min(0, rows), min(0, row)), e.add(max(0, rows), max(0, row)))
}

func (d *def) measure(c calc) error {
	d.align, d.sig = 1, emptySignature
	e := edges{calc: c}
	switch {
	case d.form == formStruct:
		d.measureStruct(&e)
	case d.disps == nil:
		if d.count > 0 && d.length > 0 {
			e.grid(d.child, d.count, d.length, d.stride)
			d.contains(&e.calc, d.child, e.mul(d.count, d.length))
		}
	default:
		total := int64(0)
		for i := range d.disps {
			if n := d.items(i); n > 0 {
				e.block(d.child, e.mul(d.disps[i], d.unit), n)
				total = e.add(total, n)
			}
		}
		if total > 0 {
			d.contains(&e.calc, d.child, total)
		}
	}
	d.bound(&e)
	if e.over {
		return fmt.Errorf("datatype: %w: by %v", ErrTooLarge, d.combiner)
	}
	return nil
}

func (d *def) measureStruct(e *edges) {
	for i, child := range d.children {
		if n := d.items(i); n > 0 {
			e.block(child, d.disps[i], n)
			d.contains(&e.calc, child, n)
		}
	}
}

func (d *def) items(i int) int64 {
	if d.lens != nil {
		return d.lens[i]
	}
	return d.length
}

func (d *def) contains(c *calc, child *def, n int64) {
	d.size = c.add(d.size, c.mul(n, child.size))
	d.elements = c.add(d.elements, c.mul(n, child.elements))
	for i := range d.wire {
		d.wire[i] = c.add(d.wire[i], c.mul(n, child.wire[i]))
	}
	if c.over {
		return
	}
	d.kinds |= child.kinds
	d.sig = d.sig.then(child.sig.times(n))
	d.align = max(d.align, child.align)
}

// bound sets the bounds of d. If Resized has set some of its members' bounds only those count.
func (d *def) bound(e *edges) {
	if e.seen[trueEdges].lo {
		d.tlb, d.tub, d.end = e.lo[trueEdges], e.hi[trueEdges], e.hi[memoryEdges]
	}
	d.lb, d.ub = e.lo[plainEdges], e.hi[plainEdges]
	if e.seen[markedEdges].lo {
		d.lb, d.marks = e.lo[markedEdges], d.marks|markLB
	}
	if e.seen[markedEdges].hi {
		d.ub, d.marks = e.hi[markedEdges], d.marks|markUB
	}
	switch lower, upper := e.seen[plainEdges].lo || d.marks&markLB != 0, e.seen[plainEdges].hi || d.marks&markUB != 0; {
	case !upper: // a single marker gives both bounds
		d.ub = d.lb
	case !lower:
		d.lb = d.ub
	}
	if d.form == formStruct && d.marks&markUB == 0 {
		if over := (d.ub - d.lb) % d.align; over > 0 {
			d.ub = e.add(d.ub, d.align-over)
		}
	}
}

// Size returns the size in bytes of the elements of one item, as MPI_Type_size counts it (MPI-4.1,
// 5.1.5): a pair without its padding.
func (t *Type) Size() int64 { return defOf(t).size }

// LB returns the lower bound of an item, in bytes from its origin (MPI-4.1, 5.1.7).
func (t *Type) LB() int64 { return defOf(t).lb }

// UB returns the upper bound of an item, in bytes from its origin.
func (t *Type) UB() int64 { return defOf(t).ub }

// Extent returns the distance of consecutive items, in bytes. It may be negative (MPI-4.1, 5.1.7).
func (t *Type) Extent() int64 { return defOf(t).extent() }

// TrueLB returns the displacement of the lowest byte of the elements, without gaps that Resized has
// added (MPI-4.1, 5.1.8).
func (t *Type) TrueLB() int64 { return defOf(t).tlb }

// TrueExtent returns the number of bytes from the start of the lowest element to the end of the
// highest.
func (t *Type) TrueExtent() int64 { return defOf(t).tub - defOf(t).tlb }

// Packed returns the number of bytes of the stream of one item in r. For derived types in the
// native representation it is Size, plus the padding of pairs.
func (t *Type) Packed(r Representation) int64 { return defOf(t).wire[r.class()] }

// nothing is the def of a nil Type.
var nothing = &def{how: how{combiner: CombinerStruct}, shape: shape{form: formStruct}, sig: emptySignature, align: 1}

func defOf(t *Type) *def {
	if t == nil || t.def == nil {
		return nothing
	}
	return t.def
}

// Span returns the range of memory [lo, hi) that count items touch, in bytes from the origin of the
// first; it includes the padding of pairs. It is 0, 0 if they touch nothing. The error is ErrCount
// for count < 0, and ErrTooLarge for a result that does not fit into 64 bits. MPI_Type_true_extent
// gives the same for one item without padding (MPI-4.1, 5.1.8).
func (t *Type) Span(count int) (lo, hi int64, err error) {
	if count < 0 {
		return 0, 0, fmt.Errorf("datatype: %w: %d", ErrCount, count)
	}
	d := defOf(t)
	if count == 0 || d.elements == 0 {
		return 0, 0, nil
	}
	var c calc
	far := c.mul(int64(count)-1, d.extent())
	lo, hi = c.add(d.tlb, min(0, far)), c.add(d.end, max(0, far))
	c.mul(int64(count), max(d.size, d.wire[classMemory], d.wire[classWide]))
	if c.over || hi-lo > math.MaxInt {
		return 0, 0, fmt.Errorf("datatype: %w: %d items of %v", ErrTooLarge, count, t)
	}
	return lo, hi, nil
}
