package datatype

import "math"

// Undefined is MPI_UNDEFINED: the count if it cannot be expressed as a number of items (MPI-4.1,
// 3.2.5).
const Undefined = -32766

// Count returns how many items of t a stream of n bytes in r has. It is false if that is not a
// whole number, or if items without elements are given bytes.
//
// It is MPI_Get_count (MPI-4.1, 3.2.5); the result may not fit into C's int.
func (t *Type) Count(r Representation, n int64) (int64, bool) {
	size := t.Packed(r)
	switch {
	case n == 0:
		return 0, true
	case n < 0 || size == 0 || n%size != 0:
		return Undefined, false
	}
	return n / size, true
}

// Elements returns the number of basic elements of t in a stream of n bytes in r, and false if the
// last one is incomplete, or t has none. It is MPI_Get_elements (MPI-4.1, 5.1.11): a pair counts as
// two elements.
func (t *Type) Elements(r Representation, n int64) (int64, bool) {
	d := defOf(t)
	size := d.wire[r.class()]
	switch {
	case n == 0:
		return 0, true
	case n < 0 || size == 0 || n/size > math.MaxInt64/d.elements-1:
		return Undefined, false
	}
	part, ok := d.elementsIn(r.class(), n%size)
	if !ok {
		return Undefined, false
	}
	return n/size*d.elements + part, true
}

// Stream returns the number of bytes in r of the first n basic elements of items of t, and false if
// t has no elements, or n < 0. It is the inverse of Elements.
func (t *Type) Stream(r Representation, n int64) (int64, bool) {
	d := defOf(t)
	if n == 0 {
		return 0, true
	}
	if n < 0 || d.elements == 0 {
		return 0, false
	}
	var c calc
	total := c.add(c.mul(n/d.elements, d.wire[r.class()]), d.bytesOf(r.class(), n%d.elements))
	return total, !c.over
}

func (d *def) elementsIn(c class, n int64) (int64, bool) {
	if n == 0 {
		return 0, true
	}
	switch d.form {
	case formBasic:
		switch n {
		case d.wire[c]:
			return d.elements, true
		case d.valueBytes(c):
			return 1, d.elements == 2
		}
		return 0, false
	case formStruct:
		total := int64(0)
		for i, child := range d.children {
			whole := child.wire[c] * d.items(i)
			if n <= whole && whole > 0 {
				part, ok := child.elementsIn(c, n%child.wire[c])
				return total + n/child.wire[c]*child.elements + part, ok
			}
			n -= whole
			total += child.elements * d.items(i)
		}
		return total, n == 0
	default:
		part, ok := d.child.elementsIn(c, n%d.child.wire[c])
		return n/d.child.wire[c]*d.child.elements + part, ok
	}
}

// bytesOf is the inverse of elementsIn.
func (d *def) bytesOf(c class, n int64) int64 {
	if n == 0 {
		return 0
	}
	switch d.form {
	case formBasic:
		if n == d.elements {
			return d.wire[c]
		}
		return d.valueBytes(c)
	case formStruct:
		total := int64(0)
		for i, child := range d.children {
			whole := child.elements * d.items(i)
			if n <= whole && whole > 0 {
				return total + n/child.elements*child.wire[c] + child.bytesOf(c, n%child.elements)
			}
			n -= whole
			total += child.wire[c] * d.items(i)
		}
		return total
	default:
		return n/d.child.elements*d.child.wire[c] + d.child.bytesOf(c, n%d.child.elements)
	}
}

func (d *def) valueBytes(c class) int64 {
	l := &layouts[d.kind]
	switch {
	case l.twin:
		return int64(l.width)
	case c == classExternal:
		return int64(l.external)
	case c == classWide, c == classFloat:
		return int64(l.wireWidth)
	}
	return int64(l.width)
}
