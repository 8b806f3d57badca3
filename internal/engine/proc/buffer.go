package proc

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/openimpi/impi/core/datatype"
)

// Datatype is the type of a Buffer's items: a basic type or one derived from others (MPI-4.1, 5.1).
// nil is MPI_DATATYPE_NULL.
type Datatype = datatype.Type

// Buffer is memory that messages come from and go to: count items of a datatype. It is a value and
// costs no allocation; the memory stays the caller's. Structs of up to four words are passed in
// registers, and each copy of a larger one takes some ns: a fifth word would slow down all calls.
type Buffer struct {
	mem   unsafe.Pointer // origin of the first item
	len   int64          // bytes of memory from mem on, Unknown, or inPlace
	count int
	typ   *Datatype
}

const (
	// Unknown is the length of memory that only the caller knows.
	Unknown = -1
	// inPlace is the length of a Buffer that is no memory but MPI_IN_PLACE.
	inPlace = -2
	// firstAddress is below all memory that programs have. Items at nil may lie
	// above: their displacements are addresses (MPI_BOTTOM).
	firstAddress = 4096
)

// InPlace is the Buffer for MPI_IN_PLACE: the other buffer of the collective operation has the data
// (MPI-4.1, 6.2.1).
var InPlace = Buffer{len: inPlace}

func Of[T Type](s []T) Buffer {
	var zero T
	p := unsafe.Pointer(unsafe.SliceData(s))
	return Buffer{mem: p, len: int64(len(s)) * int64(unsafe.Sizeof(zero)), count: len(s), typ: datatype.Basic(datatype.KindOf[T]())}
}

func elements(b []byte, k datatype.Kind) Buffer {
	return Buffer{mem: unsafe.Pointer(unsafe.SliceData(b)), len: int64(len(b)), count: len(b) / k.Size(), typ: datatype.Basic(k)}
}

func Typed[T any](s []T, count int, t *Datatype) Buffer {
	var zero T
	return Buffer{mem: unsafe.Pointer(unsafe.SliceData(s)), len: int64(len(s)) * int64(unsafe.Sizeof(zero)), count: count, typ: t}
}

func At(p unsafe.Pointer, count int, t *Datatype) Buffer {
	return Buffer{mem: p, len: Unknown, count: count, typ: t}
}

func (b Buffer) Count() int { return b.count }

func (b Buffer) Datatype() *Datatype { return b.typ }

// Check returns an error for a Buffer that cannot be sent or received into.
func (b *Buffer) Check() error {
	switch {
	case b.len == inPlace:
		return fmt.Errorf("%w: MPI_IN_PLACE means nothing here", ErrBuffer)
	case b.count < 0:
		return fmt.Errorf("%w: %d", datatype.ErrCount, b.count)
	}
	if err := b.typ.Check(); err != nil {
		return err
	}
	lo, hi, err := b.typ.Span(b.count)
	switch {
	case err != nil || lo == hi:
		return err
	case b.mem == nil && lo < firstAddress:
		return fmt.Errorf("%w: nil, for %d items of %v", ErrBuffer, b.count, b.typ)
	case b.len != Unknown && (lo < 0 || hi > b.len):
		return fmt.Errorf("%w: %d items of %v are bytes %d to %d, and it has %d", ErrBuffer, b.count, b.typ, lo, hi, b.len)
	}
	return nil
}

// Plain returns the memory of b if its items are elements of one kind without gaps, as in most
// messages. ok is false for a Buffer for which Check returns an error.
func (b *Buffer) Plain() (mem []byte, k datatype.Kind, ok bool) {
	k, ok = b.typ.Plain()
	if !ok || b.count <= 0 || b.mem == nil || b.len == inPlace || b.count > math.MaxInt32 {
		return nil, k, false
	}
	n := b.count * k.Size()
	if b.len != Unknown && int64(n) > b.len {
		return nil, k, false
	}
	return unsafe.Slice((*byte)(b.mem), n), k, true
}

// Run returns the memory of b if its items are sent to procs of the same representation unchanged,
// in one piece.
func (b *Buffer) Run() (mem []byte, ok bool) {
	disp, ok := b.typ.Run(b.count)
	if !ok {
		return nil, false
	}
	n := int(b.Size(datatype.Native))
	if n == 0 {
		return nil, true
	}
	return unsafe.Slice((*byte)(unsafe.Add(b.mem, disp)), n), true
}

// Size returns how many bytes the items of b take in a message in a representation.
func (b *Buffer) Size(rep datatype.Representation) int64 {
	return int64(b.count) * b.typ.Packed(rep)
}

// InPlace reports whether b is MPI_IN_PLACE.
func (b Buffer) InPlace() bool { return b.len == inPlace }

// Len returns the number of bytes of memory from Memory on; Unknown if only the program knows it.
func (b Buffer) Len() int64 { return b.len }

// Memory returns the origin of the first item.
func (b Buffer) Memory() unsafe.Pointer { return b.mem }
