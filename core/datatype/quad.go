package datatype

import (
	"encoding/binary"
	"math/bits"
)

// quad is the bits of an IEEE binary128 number: sign, 15 bits of exponent, and
// 112 of the fraction.
type quad struct{ hi, lo uint64 }

const (
	quadSign    = 1 << 63
	quadExp     = 0x7fff
	quadFrac    = 1<<48 - 1 // bits of hi
	x87One      = 1 << 63   // the integer bit, which a quad does not have
	x87Dropped  = 49        // bits of a quad's fraction that an x87 number lacks
	quadQuietHi = 1 << 47
)

// encodeQuads writes the long doubles of src in the representation r: for external32 as IEEE quads
// (MPI-4.1, 14.5.2).
func encodeQuads(dst, src []byte, l *layout, r Representation) {
	width := int(l.width)
	for len(src) >= width && len(dst) >= quadWidth {
		r.putLong(dst[:quadWidth], loadLongDouble(src))
		dst, src = dst[quadWidth:], src[width:]
	}
}

// decodeQuads is the inverse of encodeQuads. What does not fit into an x87 number is
// rounded to nearest even.
func decodeQuads(dst, src []byte, l *layout, r Representation) {
	width := int(l.width)
	for len(dst) >= width && len(src) >= quadWidth {
		storeLongDouble(dst[:width], r.getLong(src))
		dst, src = dst[width:], src[quadWidth:]
	}
}

func (r Representation) putLong(b []byte, q quad) {
	if r == NativeX86 {
		putX87(b, q)
	} else {
		putQuad(b, q, r.big())
	}
}

func (r Representation) getLong(b []byte) quad {
	if r == NativeX86 {
		return getX87(b)
	}
	return getQuad(b, r.big())
}

func loadLongDouble(b []byte) quad {
	if x87 {
		return getX87(b)
	}
	return getQuad(b, hostBig)
}

// storeLongDouble is the inverse of loadLongDouble. Padding becomes zero.
func storeLongDouble(b []byte, q quad) {
	if x87 {
		putX87(b, q)
	} else {
		putQuad(b, q, hostBig)
	}
}

func getX87(b []byte) quad {
	return fromX87(binary.LittleEndian.Uint16(b[8:]), binary.LittleEndian.Uint64(b))
}

// putX87 fills b with an x87 number and zeros behind it.
func putX87(b []byte, q quad) {
	top, mant := q.x87()
	clear(b)
	binary.LittleEndian.PutUint64(b, mant)
	binary.LittleEndian.PutUint16(b[8:], top)
}

func putQuad(b []byte, q quad, big bool) {
	if big {
		binary.BigEndian.PutUint64(b, q.hi)
		binary.BigEndian.PutUint64(b[8:], q.lo)
	} else {
		binary.LittleEndian.PutUint64(b, q.lo)
		binary.LittleEndian.PutUint64(b[8:], q.hi)
	}
}

func getQuad(b []byte, big bool) quad {
	if big {
		return quad{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}
	}
	return quad{binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b)}
}

// fromX87 converts an x87 number: sign and exponent, and 64 bits with the integer bit.
// Encodings that the processor itself rejects become NaN.
func fromX87(top uint16, mant uint64) quad {
	exp := uint64(top & quadExp)
	switch {
	case exp == 0 && mant&x87One != 0:
		exp = 1
	case exp != 0 && mant&x87One == 0:
		exp, mant = quadExp, mant|1<<62
	}
	frac := mant << 1
	return quad{uint64(top&0x8000)<<48 | exp<<48 | frac>>16, frac << 48}
}

func (q quad) x87() (top uint16, mant uint64) {
	top, exp := uint16(q.hi>>63)<<15, uint16(q.hi>>48)&quadExp
	hi := q.hi & quadFrac
	mant = hi<<(64-x87Dropped) | q.lo>>x87Dropped
	if exp == quadExp {
		if hi|q.lo != 0 && mant == 0 {
			mant = 1 << 62 // keeps a NaN whose payload was cut off
		}
		return top | exp, mant | x87One
	}
	if exp != 0 {
		mant |= x87One
	}
	rest, half := q.lo&(1<<x87Dropped-1), uint64(1)<<(x87Dropped-1)
	if rest > half || rest == half && mant&1 != 0 {
		var carry uint64
		mant, carry = bits.Add64(mant, 1, 0)
		switch {
		case carry != 0:
			mant, exp = x87One, exp+1
		case exp == 0 && mant&x87One != 0:
			exp = 1
		}
	}
	return top | exp, mant
}
