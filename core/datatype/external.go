package datatype

import (
	"errors"
	"fmt"
	"unsafe"
)

// ErrTruncate is wrapped when items do not fit into a buffer to pack into, or the
// bytes to unpack end before the items do.
var ErrTruncate = errors.New("buffer ends before the items")

// Datarep gives the representation that MPI calls name. Only external32 is one
// that user data can be packed in; others give ErrRepresentation.
func Datarep(name string) (Representation, error) {
	if name != "external32" {
		return Native, fmt.Errorf("datatype: %w: %q, want \"external32\"", ErrRepresentation, name)
	}
	return External32, nil
}

// PackExternalSize is how many bytes count items are in the representation that
// MPI calls datarep.
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

// PackAt packs count items at base into buf in r, from position on, and gives the
// position behind them. Nothing is written unless all items fit.
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

// PackExternal is PackAt in the representation that MPI calls datarep.
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

// fits gives the bytes of count items if buf has them from position on.
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
