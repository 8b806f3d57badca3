package datatype

import "fmt"

// Contiguous returns the type of count items of old one after the other (MPI-4.1, 5.1.2).
func Contiguous(count int64, old *Type) (*Type, error) {
	return vector(how{combiner: CombinerContiguous}, count, 1, 0, old)
}

// Vector returns the type of count blocks of length items each, the blocks stride extents of old
// apart (MPI-4.1, 5.1.2).
func Vector(count, length, stride int64, old *Type) (*Type, error) {
	return vector(how{combiner: CombinerVector, args: []int64{stride}}, count, length, stride, old)
}

// Hvector is Vector with the stride in bytes.
func Hvector(count, length, stride int64, old *Type) (*Type, error) {
	return vector(how{combiner: CombinerHvector}, count, length, stride, old)
}

func vector(h how, count, length, stride int64, old *Type) (*Type, error) {
	d, err := usable(old)
	if err != nil {
		return nil, err
	}
	if count < 0 || length < 0 {
		return nil, fmt.Errorf("datatype: %w: %v of %d blocks of %d items", ErrCount, h.combiner, count, length)
	}
	var c calc
	switch h.combiner {
	case CombinerContiguous:
		stride = d.extent()
	case CombinerVector:
		stride = c.mul(stride, d.extent())
	default: // the stride is in bytes
	}
	return finish(&def{how: h, shape: shape{form: formBlocks, count: count, length: length, stride: stride, child: d}}, c)
}

// Indexed returns the type of a block of lens[i] items of old at disps[i] extents of old, for all i
// (MPI-4.1, 5.1.2). It keeps neither slice.
func Indexed(lens, disps []int64, old *Type) (*Type, error) {
	return indexed(CombinerIndexed, lens, disps, 0, old)
}

// Hindexed is Indexed with displacements in bytes.
func Hindexed(lens, disps []int64, old *Type) (*Type, error) {
	return indexed(CombinerHindexed, lens, disps, 0, old)
}

// IndexedBlock is Indexed with length items in each block (MPI_Type_create_indexed_block; MPI-4.1,
// 5.1.2). It keeps no slice.
func IndexedBlock(length int64, disps []int64, old *Type) (*Type, error) {
	return indexed(CombinerIndexedBlock, nil, disps, length, old)
}

// HindexedBlock is IndexedBlock with displacements in bytes (MPI_Type_create_hindexed_block).
func HindexedBlock(length int64, disps []int64, old *Type) (*Type, error) {
	return indexed(CombinerHindexedBlock, nil, disps, length, old)
}

func indexed(combiner Combiner, lens, disps []int64, length int64, old *Type) (*Type, error) {
	d, err := usable(old)
	if err != nil {
		return nil, err
	}
	each := combiner == CombinerIndexed || combiner == CombinerHindexed
	if each {
		if err := checkLengths(combiner, lens, disps); err != nil {
			return nil, err
		}
	}
	if length < 0 {
		return nil, fmt.Errorf("datatype: %w: %v with blocks of %d items", ErrCount, combiner, length)
	}
	s := shape{form: formBlocks, count: int64(len(disps)), length: length, unit: 1, disps: cloned(disps), child: d}
	if each {
		s.lens = cloned(lens)
	}
	if combiner == CombinerIndexed || combiner == CombinerIndexedBlock {
		s.unit = d.extent()
	}
	return finish(&def{how: how{combiner: combiner}, shape: s}, calc{})
}

// Struct returns the type of a block of lens[i] items of types[i] at disps[i] bytes, for all i. Its
// extent is rounded up to the alignment of such a struct in C, which MPI calls epsilon (MPI-4.1,
// 5.1), unless a member has bounds set by Resized. It keeps none of the slices.
func Struct(lens, disps []int64, types []*Type) (*Type, error) {
	if err := checkLengths(CombinerStruct, lens, disps); err != nil {
		return nil, err
	}
	if len(types) != len(lens) {
		return nil, fmt.Errorf("datatype: %w: %v with %d blocks and %d types", ErrArg, CombinerStruct, len(lens), len(types))
	}
	children := make([]*def, len(types))
	for i, t := range types {
		d, err := usable(t)
		if err != nil {
			return nil, fmt.Errorf("%v of block %d: %w", CombinerStruct, i, err)
		}
		children[i] = d
	}
	s := shape{form: formStruct, count: int64(len(lens)), unit: 1, lens: cloned(lens), disps: cloned(disps), children: children}
	return finish(&def{how: how{combiner: CombinerStruct}, shape: s}, calc{})
}

func checkLengths(combiner Combiner, lens, disps []int64) error {
	if len(lens) != len(disps) {
		return fmt.Errorf("datatype: %w: %v with %d blocks and %d displacements", ErrArg, combiner, len(lens), len(disps))
	}
	for i, n := range lens {
		if n < 0 {
			return fmt.Errorf("datatype: %w: %v: block %d has %d items", ErrCount, combiner, i, n)
		}
	}
	return nil
}

// cloned returns a copy that is never nil, since nil has a meaning in a shape.
func cloned(s []int64) []int64 { return append(make([]int64, 0, len(s)), s...) }

// Resized returns old with other bounds (MPI-4.1, 5.1.7): items follow each other extent bytes
// apart. A type of which some members have set bounds gets its bounds from these members alone.
func Resized(old *Type, lb, extent int64) (*Type, error) {
	d, err := usable(old)
	if err != nil {
		return nil, err
	}
	r, err := resized(d, lb, extent)
	if err != nil {
		return nil, err
	}
	r.how = how{combiner: CombinerResized, args: []int64{lb, extent}}
	return handle(r), nil
}

func resized(d *def, lb, extent int64) (*def, error) {
	var c calc
	r := alias(d)
	r.lb, r.ub, r.marks = c.add(lb, 0), c.add(lb, extent), markLB|markUB
	if c.over {
		return nil, fmt.Errorf("datatype: %w: lower bound %d and extent %d", ErrTooLarge, lb, extent)
	}
	return r, nil
}

// Dup returns another handle of the same datatype, committed if old is (MPI-4.1, 5.1.10).
func Dup(old *Type) (*Type, error) {
	d, err := usable(old)
	if err != nil {
		return nil, err
	}
	r := alias(d)
	r.how = how{combiner: CombinerDup}
	t := handle(r)
	if old.Committed() {
		return t, t.Commit()
	}
	return t, nil
}

// alias returns a def with the elements and bounds of d, for the caller to change.
func alias(d *def) *def {
	return &def{shape: shape{form: formAlias, count: 1, length: 1, child: d},
		size: d.size, wire: d.wire, elements: d.elements, sig: d.sig, kinds: d.kinds,
		lb: d.lb, ub: d.ub, tlb: d.tlb, tub: d.tub, end: d.end, align: d.align, marks: d.marks}
}

// finish makes a type of a def whose shape is set: it computes the other fields. c has checked the
// arguments.
func finish(d *def, c calc) (*Type, error) {
	if err := d.measure(c); err != nil {
		return nil, err
	}
	return handle(d), nil
}
