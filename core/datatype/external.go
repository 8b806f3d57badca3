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

// Stream is what items of a datatype are in a representation: bytes one after the
// other.
type Stream struct {
	t *Type
	r Representation
}

// In describes the stream of t's items in r.
func (t *Type) In(r Representation) Stream { return Stream{t, r} }

// Size is how many bytes count items are. It is ErrCount for a negative count, and
// ErrTooLarge for what does not fit into 64 bits.
func (s Stream) Size(count int) (int64, error) {
	if count < 0 {
		return 0, fmt.Errorf("datatype: %w: %d", ErrCount, count)
	}
	var c calc
	n := c.mul(int64(count), s.t.Packed(s.r))
	if c.over {
		return 0, fmt.Errorf("datatype: %w: %d items of %v", ErrTooLarge, count, s.t)
	}
	return n, nil
}

// Pack packs count items at base into buf, from position on, and gives the position
// behind them. Nothing is written unless all items fit.
func (s Stream) Pack(buf []byte, position int64, base unsafe.Pointer, count int) (int64, error) {
	n, err := s.fits(buf, position, count)
	if err != nil {
		return position, err
	}
	s.t.Encode(s.r, buf[position:position+n], base, count, 0)
	return position + n, nil
}

// Unpack is the inverse of Pack.
func (s Stream) Unpack(buf []byte, position int64, base unsafe.Pointer, count int) (int64, error) {
	n, err := s.fits(buf, position, count)
	if err != nil {
		return position, err
	}
	s.t.Decode(s.r, base, count, 0, buf[position:position+n], nil)
	return position + n, nil
}

// fits gives the bytes of count items if buf has them from position on.
func (s Stream) fits(buf []byte, position int64, count int) (int64, error) {
	if err := s.t.Check(); err != nil {
		return 0, err
	}
	if s.r >= representations {
		return 0, fmt.Errorf("datatype: %w: %d", ErrRepresentation, s.r)
	}
	n, err := s.Size(count)
	if err != nil {
		return 0, err
	}
	if position < 0 {
		return 0, fmt.Errorf("datatype: %w: position %d", ErrArg, position)
	}
	if n > int64(len(buf))-position {
		return 0, fmt.Errorf("datatype: %w: %d items of %v are %d bytes, and %d are left at position %d",
			ErrTruncate, count, s.t, n, int64(len(buf))-position, position)
	}
	return n, nil
}
