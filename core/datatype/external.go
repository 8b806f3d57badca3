package datatype

import (
	"errors"
	"fmt"
	"unsafe"
)

// ErrTruncate is wrapped by the error if items do not fit into the buffer they are packed
// into, or if the bytes to unpack end before the items.
var ErrTruncate = errors.New("buffer ends before the items")

// Datarep returns the representation with MPI's name. User data can be packed in external32 only
// (MPI-4.1, 5.3); for other names the error is ErrRepresentation.
func Datarep(name string) (Representation, error) {
	if name != "external32" {
		return Native, fmt.Errorf("datatype: %w: %q, want \"external32\"", ErrRepresentation, name)
	}
	return External32, nil
}

// PackExternalSize returns the size in bytes of count items in the representation with MPI's name
// datarep (MPI-4.1, 5.3, MPI_Pack_external_size).
func (t *Type) PackExternalSize(datarep string, count int) (int64, error) {
	r, err := Datarep(datarep)
	if err == nil {
		err = t.Valid()
	}
	if err != nil {
		return 0, err
	}
	return packSize(t, r, count)
}

// PackAt packs count items at base into buf in r, from position on, and returns the position after
// them (MPI-4.1, 5.2). If not all items fit, nothing is written and the error is ErrTruncate.
func (t *Type) PackAt(r Representation, buf []byte, position int64, base unsafe.Pointer, count int) (int64, error) {
	n, err := fits(t, r, buf, position, count)
	if err != nil {
		return position, err
	}
	t.Encode(r, buf[position:position+n], base, count, 0)
	return position + n, nil
}

// UnpackAt is the inverse of PackAt.
func (t *Type) UnpackAt(r Representation, buf []byte, position int64, base unsafe.Pointer, count int) (int64, error) {
	n, err := fits(t, r, buf, position, count)
	if err != nil {
		return position, err
	}
	t.Decode(r, base, count, 0, buf[position:position+n], nil)
	return position + n, nil
}

// PackExternal is PackAt in the representation with MPI's name datarep.
func (t *Type) PackExternal(datarep string, buf []byte, position int64, base unsafe.Pointer, count int) (int64, error) {
	r, err := Datarep(datarep)
	if err != nil {
		return position, err
	}
	return t.PackAt(r, buf, position, base, count)
}

// UnpackExternal is the inverse of PackExternal.
func (t *Type) UnpackExternal(datarep string, buf []byte, position int64, base unsafe.Pointer, count int) (int64, error) {
	r, err := Datarep(datarep)
	if err != nil {
		return position, err
	}
	return t.UnpackAt(r, buf, position, base, count)
}

// fits returns the bytes of count items if buf has room for them from position on.
func fits(t *Type, r Representation, buf []byte, position int64, count int) (int64, error) {
	if err := t.Check(); err != nil {
		return 0, err
	}
	if r >= representations {
		return 0, fmt.Errorf("datatype: %w: %d", ErrRepresentation, r)
	}
	n, err := packSize(t, r, count)
	if err != nil {
		return 0, err
	}
	if position < 0 {
		return 0, fmt.Errorf("datatype: %w: position %d", ErrArg, position)
	}
	if n > int64(len(buf))-position {
		return 0, fmt.Errorf("datatype: %w: %d items of %v are %d bytes, and %d are left at position %d",
			ErrTruncate, count, t, n, int64(len(buf))-position, position)
	}
	return n, nil
}
