package datatype

import (
	"errors"
	"fmt"
	"sync/atomic"
)

// The errors of datatypes and of the arguments that make them.
var (
	// ErrType means no datatype, a freed one, one that is not committed, or one that cannot be
	// freed (MPI_ERR_TYPE; MPI-4.1, 5.1.9).
	ErrType = errors.New("invalid datatype")
	// ErrCount means a negative count.
	ErrCount = errors.New("invalid count")
	// ErrArg means that another argument of a constructor or a query is out of range.
	ErrArg = errors.New("invalid argument of a datatype")
	// ErrTooLarge means sizes or displacements that do not fit into 64 bits.
	ErrTooLarge = errors.New("datatype too large")
)

// Type is a handle of a datatype (MPI-4.1, 5.1). The datatype itself is immutable; the handle can
// be committed, named and freed, by several goroutines at a time. nil is MPI_DATATYPE_NULL: its
// methods that return an error return ErrType, and the others describe a type without elements.
type Type struct {
	*def
	attachment
	committed atomic.Bool
	freed     atomic.Bool
	name      atomic.Pointer[string]
}

// attachment is a value that the layer above keeps with a handle.
type attachment struct{ attached any }

// def is an immutable datatype, shared by handles and by the types made of it.
type def struct {
	shape
	how

	size     int64          // size of one item, as MPI counts: pairs without padding
	wire     [classes]int64 // size of one item in a stream, by class
	elements int64          // number of basic elements as MPI counts them: a pair is two
	sig      signature      // signature of the sequence of kinds
	kinds    uint64         // one bit for each kind among the elements
	lb, ub   int64
	tlb, tub int64 // bounds of the elements alone, without set bounds
	end      int64 // like tub, but with the padding of pairs
	align    int64
	marks    marks

	own  *Type // only handle of a predefined type
	prog atomic.Pointer[program]
}

// shape is the structure of a datatype: blocks of children. A block has lens[i] (or length)
// items of its child, each one extent of the child after the one before; it begins
// disps[i]*unit (or i*stride) bytes from the origin.
type shape struct {
	form     form
	kind     Kind    // kind of a basic type
	count    int64   // number of blocks
	length   int64   // items of each block, if lens is nil
	stride   int64   // bytes between blocks, if disps is nil
	unit     int64   // unit of disps in bytes
	lens     []int64 // items of each block
	disps    []int64 // displacement of each block
	child    *def
	children []*def // type of each block, in a struct
}

type form uint8

const (
	formBasic  form = iota
	formBlocks      // count blocks of child
	formStruct      // blocks of children
	formAlias       // only child: resized, dup, subarray, darray
)

// marks say which bounds were set by Resized and are not the elements' own.
type marks uint8

const (
	markLB marks = 1 << iota
	markUB
)

// class is how elements are counted in a stream: as in memory, in the sizes of a 64-bit
// host, or in those of external32.
type class uint8

const (
	classMemory class = iota
	classWide
	classExternal
	classFloat // like classWide, but doubles are sent as floats

	classes
)

func (r Representation) class() class {
	switch r {
	case Native:
		return classMemory
	case External32:
		return classExternal
	case NativeFloat:
		return classFloat
	default:
		return classWide
	}
}

func handle(d *def) *Type { return &Type{def: d} }

// usable returns the def of t, or ErrType if t is nil or freed.
func usable(t *Type) (*def, error) {
	if t == nil || t.def == nil {
		return nil, fmt.Errorf("datatype: %w: no datatype given", ErrType)
	}
	if t.freed.Load() {
		return nil, fmt.Errorf("datatype: %w: %v has been freed", ErrType, t)
	}
	return t.def, nil
}

// Valid returns ErrType if t is nil or freed.
func (t *Type) Valid() error {
	_, err := usable(t)
	return err
}

// Check returns ErrType if t cannot be used in communication: nil, freed or not
// committed.
func (t *Type) Check() error {
	if t == nil || !t.committed.Load() || t.freed.Load() {
		return whyNot(t)
	}
	return nil
}

func whyNot(t *Type) error {
	if err := t.Valid(); err != nil {
		return err
	}
	return fmt.Errorf("datatype: %w: %v is not committed", ErrType, t)
}

// Commit makes t ready for communication (MPI-4.1, 5.1.9). It is the only expensive step: it
// compiles the program by which Pack and the other methods go through memory.
func (t *Type) Commit() error {
	d, err := usable(t)
	if err != nil {
		return err
	}
	d.program()
	t.committed.Store(true)
	return nil
}

// Committed reports whether t has been committed. Named types always are.
func (t *Type) Committed() bool { return t != nil && t.committed.Load() }

// Named reports whether t is a predefined type with a name. Such types cannot be freed, and
// neither can the parameterized types of Fortran, which have no name.
func (t *Type) Named() bool { return t != nil && t.def != nil && t.def.named() }

// Free releases the handle. Operations under way and types made of t are not affected (MPI-4.1,
// 5.1.9). Predefined types cannot be freed.
func (t *Type) Free() error {
	d, err := usable(t)
	if err != nil {
		return err
	}
	if d.own != nil {
		return fmt.Errorf("datatype: %w: %v is predefined and cannot be freed", ErrType, t)
	}
	if t.freed.Swap(true) {
		return fmt.Errorf("datatype: %w: %v has been freed", ErrType, t)
	}
	return nil
}

// Name returns the name of t: MPI's name of a predefined type, otherwise the last one set by
// SetName (MPI-4.1, 7.8).
func (t *Type) Name() string {
	if t == nil {
		return "MPI_DATATYPE_NULL"
	}
	if name := t.name.Load(); name != nil {
		return *name
	}
	return ""
}

// SetName sets the name that Name returns (MPI_Type_set_name; MPI-4.1, 7.8). Other handles of the
// type keep theirs. It fails with ErrType if t has been freed.
func (t *Type) SetName(name string) error {
	if _, err := usable(t); err != nil {
		return err
	}
	t.name.Store(&name)
	return nil
}

func (t *Type) String() string {
	if name := t.Name(); name != "" {
		return name
	}
	if t.def == nil {
		return "MPI_DATATYPE_NULL"
	}
	return "a type made by " + t.def.combiner.String()
}

// Attach keeps a value of the layer above with the handle, such as cached attributes (MPI-4.1,
// 7.7.4). Calls must not overlap.
func (a *attachment) Attach(v any) { a.attached = v }

// Attached returns the value that was attached last, or nil.
func (t *Type) Attached() any {
	if t == nil {
		return nil
	}
	return t.attached
}
