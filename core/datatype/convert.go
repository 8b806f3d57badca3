package datatype

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// ErrBuffer is wrapped by the error if a buffer is too small for its elements.
var ErrBuffer = errors.New("buffer too small for the elements")

// ErrKind is wrapped by the error for a value that is not a kind.
var ErrKind = errors.New("not a kind of element")

// ErrRepresentation is wrapped by the error for a value that is not a representation.
var ErrRepresentation = errors.New("not a representation")

// Representation is the form in which elements are sent to a peer.
type Representation uint8

// The representations. In all of them a Kind's elements follow each other without gaps, pairs as
// value and index. External32 is big-endian, with sizes that MPI prescribes (MPI-4.1, 14.5.2).
// NativeLE and NativeBE have the sizes that a 64-bit host has in memory, in the byte order that the
// name says, for peers that are known to use them. NativeX86 is NativeLE except for long doubles,
// which are 80 bits of an x87 in 16 bytes instead of an IEEE quad, as a C library on x86-64 has
// them. NativeFloat is NativeLE except for doubles and their complex numbers, which are floats;
// what else has doubles, such as pairs, has them as they are. Native is this host's memory as it
// is, for peers of the same build.
//
// IMPI ch.1, Data Format: user data between clients is external32.
const (
	Native Representation = iota
	External32
	NativeLE
	NativeBE
	NativeX86
	NativeFloat

	representations
)

var representationNames = [representations]string{"native", "external32", "native-le", "native-be", "native-x86", "native-float"}

// String returns the name in messages and job files.
func (r Representation) String() string {
	if r < representations {
		return representationNames[r]
	}
	return fmt.Sprintf("representation(%d)", uint8(r))
}

// ParseRepresentation is the inverse of String. The empty name is Native.
func ParseRepresentation(name string) (Representation, error) {
	if name == "" {
		return Native, nil
	}
	for r, n := range representationNames {
		if n == name {
			return Representation(r), nil
		}
	}
	return Native, fmt.Errorf("datatype: %w: %q, want one of %q", ErrRepresentation, name, representationNames[:])
}

// Valid reports whether r is one of the constants above, as a number from outside may not be.
func (r Representation) Valid() bool { return r < representations }

// Exact returns the representation that equals r without the rounding of numbers.
func (r Representation) Exact() Representation {
	if r == NativeFloat {
		return NativeLE
	}
	return r
}

// narrows reports whether doubles are floats in r, and k is a kind of doubles.
func (r Representation) narrows(k Kind) bool {
	return r == NativeFloat && (k == Float64 || k == Complex128)
}

// HostOrder returns the representation of hosts with this host's byte order: NativeLE or NativeBE.
// Only pairs need conversion to it, and it is the same on hosts of different word sizes.
func HostOrder() Representation {
	if hostBig {
		return NativeBE
	}
	return NativeLE
}

var hostBig = binary.NativeEndian.Uint16([]byte{0, 1}) == 1

func (r Representation) big() bool { return r == External32 || r == NativeBE }

// Size returns the size in bytes of one element of k in r, or 0 if k is not a kind.
func (r Representation) Size(k Kind) int {
	if !k.Valid() || r == Native {
		return k.Size()
	}
	l := &layouts[k]
	if l.index > 0 {
		return l.wire(r) + 4
	}
	if r.narrows(k) {
		return floatWidth * int(l.count)
	}
	return l.wire(r) * int(l.count)
}

// wire returns how many bytes a component has in r, which is not Native.
func (l *layout) wire(r Representation) int {
	if r == External32 {
		return int(l.external)
	}
	return int(l.wireWidth)
}

// Identity reports whether elements of k have the same form in r as in memory, so that neither
// Encode nor Decode is needed.
func (r Representation) Identity(k Kind) bool {
	if r == Native || k == Byte || k == Packed {
		return true
	}
	if k == Bool {
		return false // Decode has to turn every received byte into a valid bool
	}
	l := &layouts[k]
	if l.quad && (x87 && r != NativeX86 || !x87 && r == NativeX86) {
		return false
	}
	sameOrder := r.big() == hostBig || r.Size(k) == 1
	return sameOrder && r.Size(k) == int(l.size)
}

// Encode writes n elements of k from the native src into dst, in the representation r (MPI-4.1,
// 3.3.2). dst and src must be the same memory or not overlap; they may be the same only if both
// sizes are equal.
func (r Representation) Encode(dst, src []byte, k Kind, n int) error {
	if err := r.check(len(dst), len(src), k, n); err != nil {
		return err
	}
	l := &layouts[k]
	native, wire := n*int(l.size), n*r.Size(k)
	switch {
	case r.Identity(k) || k == Bool:
		copy(dst[:native], src[:native])
	case r.narrows(k):
		narrow(dst[:wire], src[:native])
	case l.index > 0:
		encodePairs(dst[:wire], src[:native], l, r)
	case l.quad:
		encodeQuads(dst[:wire], src[:native], l, r)
	case int(l.width) != l.wire(r):
		resize(dst[:wire], src[:native], l, r, true)
	default:
		swap(dst[:wire], src[:native], int(l.width))
	}
	return nil
}

// Decode writes n elements of k from src, in the representation r, into the native dst. The
// rules of Encode about memory hold.
func (r Representation) Decode(dst, src []byte, k Kind, n int) error {
	if err := r.check(len(src), len(dst), k, n); err != nil {
		return err
	}
	l := &layouts[k]
	native, wire := n*int(l.size), n*r.Size(k)
	switch {
	case r.Identity(k):
		copy(dst[:native], src[:native])
	case k == Bool:
		decodeBools(dst[:native], src[:native])
	case r.narrows(k):
		widen(dst[:native], src[:wire])
	case l.index > 0:
		decodePairs(dst[:native], src[:wire], l, r)
	case l.quad:
		decodeQuads(dst[:native], src[:wire], l, r)
	case int(l.width) != l.wire(r):
		resize(dst[:native], src[:wire], l, r, false)
	default:
		swap(dst[:native], src[:wire], int(l.width))
	}
	return nil
}

func (r Representation) check(wire, native int, k Kind, n int) error {
	if r >= representations {
		return fmt.Errorf("datatype: %w: %d", ErrRepresentation, r)
	}
	if !k.Valid() {
		return fmt.Errorf("datatype: %w: %d", ErrKind, k)
	}
	if n < 0 || n > native/k.Size() || n > wire/r.Size(k) {
		return fmt.Errorf("datatype: %w: %d of %v in %d bytes here and %d bytes of %v", ErrBuffer, n, k, native, wire, r)
	}
	return nil
}

// swap reverses each group of width bytes. It works on 8 bytes at a time; the byte order of
// the host does not matter, since loads and stores use the same one.
func swap(dst, src []byte, width int) {
	switch width {
	case 2:
		swap2(dst, src)
	case 4:
		swap4(dst, src)
	case 8:
		swap8(dst, src)
	case 16:
		swap16(dst, src)
	}
}

func swap16(dst, src []byte) {
	for len(src) >= 16 && len(dst) >= 16 {
		lo, hi := binary.BigEndian.Uint64(src[8:]), binary.BigEndian.Uint64(src)
		binary.LittleEndian.PutUint64(dst, lo)
		binary.LittleEndian.PutUint64(dst[8:], hi)
		dst, src = dst[16:], src[16:]
	}
}

func swap8(dst, src []byte) {
	for len(src) >= 8 && len(dst) >= 8 {
		binary.LittleEndian.PutUint64(dst, binary.BigEndian.Uint64(src))
		dst, src = dst[8:], src[8:]
	}
}

func swap4(dst, src []byte) {
	for len(src) >= 8 && len(dst) >= 8 {
		x := bits.ReverseBytes64(binary.LittleEndian.Uint64(src))
		binary.LittleEndian.PutUint64(dst, bits.RotateLeft64(x, 32))
		dst, src = dst[8:], src[8:]
	}
	if len(src) >= 4 && len(dst) >= 4 {
		binary.LittleEndian.PutUint32(dst, binary.BigEndian.Uint32(src))
	}
}

func swap2(dst, src []byte) {
	const low = 0x00ff00ff00ff00ff
	for len(src) >= 8 && len(dst) >= 8 {
		x := binary.LittleEndian.Uint64(src)
		binary.LittleEndian.PutUint64(dst, x&low<<8|x>>8&low)
		dst, src = dst[8:], src[8:]
	}
	for len(src) >= 2 && len(dst) >= 2 {
		binary.LittleEndian.PutUint16(dst, binary.BigEndian.Uint16(src))
		dst, src = dst[2:], src[2:]
	}
}

func decodeBools(dst, src []byte) {
	for i, b := range src {
		if b != 0 {
			b = 1
		}
		dst[i] = b
	}
}
