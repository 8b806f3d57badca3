package datatype

import (
	"fmt"
	"math"
	"slices"
)

// Combiner is the constructor of a datatype (MPI-4.1, 5.1.13). The values are those of MPI's ABI.
type Combiner int

// The combiners.
const (
	CombinerNamed         Combiner = 101
	CombinerDup           Combiner = 102
	CombinerContiguous    Combiner = 103
	CombinerVector        Combiner = 104
	CombinerHvector       Combiner = 105
	CombinerIndexed       Combiner = 106
	CombinerHindexed      Combiner = 107
	CombinerIndexedBlock  Combiner = 108
	CombinerHindexedBlock Combiner = 109
	CombinerStruct        Combiner = 110
	CombinerSubarray      Combiner = 111
	CombinerDarray        Combiner = 112
	CombinerF90Real       Combiner = 113
	CombinerF90Complex    Combiner = 114
	CombinerF90Integer    Combiner = 115
	CombinerResized       Combiner = 116
	CombinerValueIndex    Combiner = 117
)

var combinerNames = [...]string{
	"NAMED", "DUP", "CONTIGUOUS", "VECTOR", "HVECTOR", "INDEXED", "HINDEXED", "INDEXED_BLOCK", "HINDEXED_BLOCK",
	"STRUCT", "SUBARRAY", "DARRAY", "F90_REAL", "F90_COMPLEX", "F90_INTEGER", "RESIZED", "VALUE_INDEX",
}

// String returns MPI's name without MPI_COMBINER_.
func (c Combiner) String() string {
	if i := int(c - CombinerNamed); i >= 0 && i < len(combinerNames) {
		return combinerNames[i]
	}
	return fmt.Sprintf("COMBINER(%d)", int(c))
}

// how is what a constructor was given and the shape does not show, for MPI_Type_get_contents.
type how struct {
	combiner Combiner
	handle   int     // handle of a predefined type
	args     []int64 // arguments in MPI's order
	old      *def    // the type that a subarray or darray is made of
	large    bool    // made by a constructor with large counts
}

// Contents are the arguments of a constructor in the order of MPI_Type_get_contents (MPI-4.1,
// 5.1.13): integers, addresses, large counts, datatypes.
type Contents struct {
	Combiner Combiner
	Ints     []int64
	Addrs    []int64
	Counts   []int64
	Types    []*Type
}

func (d *def) counted() bool {
	if d.large || d.named() {
		return d.large
	}
	ints, _ := d.arguments()
	return slices.ContainsFunc(ints, func(v int64) bool { return v > math.MaxInt32 || v < math.MinInt32 })
}

// Large reports whether t's arguments are given as large counts: after WithLarge, or if
// they do not fit into C's int.
func (t *Type) Large() bool { return defOf(t).counted() }

// WithLarge returns a new handle of the same datatype whose arguments are reported as large counts,
// like those of a type made by MPI's constructors that end in _c (MPI-4.1, 5.1.13).
func (t *Type) WithLarge() (*Type, error) {
	d, err := usable(t)
	if err != nil {
		return nil, err
	}
	if d.named() {
		return nil, fmt.Errorf("datatype: %w: %v has no arguments", ErrType, t)
	}
	large := alias(d)
	large.shape, large.how = d.shape, d.how
	large.large = true
	return handle(large), nil
}

// Contents returns the constructor of t and its arguments. The types in it are new handles, which
// the caller frees, except for predefined ones. The error is ErrType for predefined types, which
// have no contents.
func (t *Type) Contents() (Contents, error) {
	d, err := usable(t)
	if err != nil {
		return Contents{}, err
	}
	if d.named() {
		return Contents{}, fmt.Errorf("datatype: %w: %v is predefined and has no contents", ErrType, t)
	}
	c := d.contents()
	for _, child := range d.olds() {
		c.Types = append(c.Types, known(child))
	}
	return c, nil
}

// Envelope is Contents with only the lengths of its lists.
type Envelope struct {
	Combiner                   Combiner
	Ints, Addrs, Counts, Types int
}

// Envelope returns the constructor of t, and the lengths of the lists of its Contents.
func (t *Type) Envelope() (Envelope, error) {
	d, err := usable(t)
	if err != nil {
		return Envelope{}, err
	}
	if d.named() {
		return Envelope{Combiner: CombinerNamed}, nil
	}
	c := d.contents()
	return Envelope{d.combiner, len(c.Ints), len(c.Addrs), len(c.Counts), len(d.olds())}, nil
}

// known returns a handle for d: for a predefined type the only one, otherwise a new one.
func known(d *def) *Type {
	if d.own != nil {
		return d.own
	}
	return handle(d)
}

func (d *def) olds() []*def {
	switch {
	case d.old != nil:
		return []*def{d.old}
	case d.form == formStruct:
		return d.children
	case d.child != nil:
		return []*def{d.child}
	}
	return nil
}

func (d *def) contents() Contents {
	c := Contents{Combiner: d.combiner}
	ints, addrs := d.arguments()
	if !d.counted() {
		c.Ints, c.Addrs = ints, addrs
		return c
	}
	switch d.combiner {
	case CombinerSubarray: // dimensions and order stay integers
		c.Ints, c.Counts = []int64{ints[0], ints[len(ints)-1]}, ints[1:len(ints)-1]
	case CombinerDarray: // all arguments except the sizes of the array stay integers
		n := ints[2]
		c.Counts = ints[3 : 3+n : 3+n]
		c.Ints = append(append([]int64{}, ints[:3]...), ints[3+n:]...)
	case CombinerF90Real, CombinerF90Complex, CombinerF90Integer:
		c.Ints = ints
	case CombinerHvector, CombinerHindexed, CombinerHindexedBlock, CombinerStruct, CombinerResized:
		c.Counts = append(ints, addrs...)
	default:
		c.Counts = ints
	}
	return c
}

func (d *def) arguments() (ints, addrs []int64) {
	switch d.combiner {
	case CombinerContiguous:
		return []int64{d.count}, nil
	case CombinerVector:
		return []int64{d.count, d.length, d.args[0]}, nil
	case CombinerHvector:
		return []int64{d.count, d.length}, []int64{d.stride}
	case CombinerIndexed:
		return append(append([]int64{d.count}, d.lens...), d.disps...), nil
	case CombinerHindexed, CombinerStruct:
		return append([]int64{d.count}, d.lens...), cloned(d.disps)
	case CombinerIndexedBlock:
		return append([]int64{d.count, d.length}, d.disps...), nil
	case CombinerHindexedBlock:
		return []int64{d.count, d.length}, cloned(d.disps)
	case CombinerResized:
		return nil, cloned(d.args)
	case CombinerSubarray, CombinerDarray, CombinerF90Real, CombinerF90Complex, CombinerF90Integer, CombinerValueIndex:
		return cloned(d.args), nil
	default:
		return nil, nil
	}
}
