package datatype

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// ErrBuffer is wrapped when a buffer is too small for its count of elements.
var ErrBuffer = errors.New("buffer too small for the elements")

// ErrKind is wrapped when a value is not one of the kinds.
var ErrKind = errors.New("not a kind of element")

// ErrRepresentation is wrapped when a value is not one of the representations.
var ErrRepresentation = errors.New("not a representation")

// Representation is how elements travel to one peer.
type Representation uint8

// The representations. External32 is what IMPI asks for between clients; a
// Kind's elements follow each other without gaps, big-endian, a pair as its
// members. NativeLE and NativeBE are the same in the byte order they say, with
// the sizes that a 64-bit host uses in memory: they are for peers known to use
// them. NativeX86 is NativeLE but for long doubles, which are an x87's 80 bits in
// 16 bytes instead of an IEEE quad: so a C library on x86-64 packs its memory.
// Native is this host's memory as it stands, for peers of the same build.
//
// IMPI ch.1, Data Format: user data between clients is external32.
const (
	Native Representation = iota
	External32
	NativeLE
	NativeBE
	NativeX86

	representations
)

var representationNames = [representations]string{"native", "external32", "native-le", "native-be", "native-x86"}

// String gives the name used in messages.
func (r Representation) String() string {
	if r < representations {
		return representationNames[r]
	}
	return fmt.Sprintf("representation(%d)", uint8(r))
}

// ParseRepresentation is the inverse of String. Empty means Native.
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

// HostOrder is the representation among hosts that share this host's byte
// order: NativeLE or NativeBE. It costs nothing but for pairs, and hosts of
// different word sizes agree on it.
func HostOrder() Representation {
	if hostBig {
		return NativeBE
	}
	return NativeLE
}

var hostBig = binary.NativeEndian.Uint16([]byte{0, 1}) == 1

func (r Representation) big() bool { return r == External32 || r == NativeBE }

// Size is the bytes of one element of k in r; 0 for what is not a kind.
func (r Representation) Size(k Kind) int {
	if !k.Valid() || r == Native {
		return k.Size()
	}
	l := &layouts[k]
	if l.index > 0 {
		return l.wire(r) + 4
	}
	return l.wire(r) * int(l.count)
}

// wire is the bytes of a component in r, which is not Native.
func (l *layout) wire(r Representation) int {
	if r == External32 {
		return int(l.external)
	}
	return int(l.wireWidth)
}

// Identity tells that elements of k travel in r as they lie in memory, so that
// neither Encode nor Decode is needed.
func (r Representation) Identity(k Kind) bool {
	if r == Native || k == Byte || k == Packed {
		return true
	}
	if k == Bool {
		return false // Decode makes proper bools of what a peer sent
	}
	l := &layouts[k]
	if l.quad && (x87 && r != NativeX86 || !x87 && r == NativeX86) {
		return false
	}
	sameOrder := r.big() == hostBig || r.Size(k) == 1
	return sameOrder && r.Size(k) == int(l.size)
}

// Encode writes n elements of k from the native src into dst as r has them. dst
// and src are the same memory or do not overlap; they may be the same only if
// both sizes are.
func (r Representation) Encode(dst, src []byte, k Kind, n int) error {
	if err := r.check(len(dst), len(src), k, n); err != nil {
		return err
	}
	l := &layouts[k]
	native, wire := n*int(l.size), n*r.Size(k)
	switch {
	case r.Identity(k) || k == Bool:
		copy(dst[:native], src[:native])
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

// Decode writes n elements of k from src, which has them as r does, into the
// native dst. The rules of Encode about memory hold.
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

// swap reverses each group of width bytes. It works on 8 bytes at a time; that
// the loads are little-endian does not matter, as the stores are too.
func swap(dst, src []byte, width int) {
	switch width {
	case 2:
		swap2(dst, src)
	case 4:
		swap4(dst, src)
	case 8:
		swap8(dst, src)
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
