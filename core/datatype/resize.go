package datatype

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// resize converts integers whose width in memory is not the width that is sent: Go's int on a
// 32-bit host, C's long in external32. Narrowing drops the upper bytes; MPI leaves open what
// happens to values that do not fit (MPI-4.1, 14.5.2).
func resize(dst, src []byte, l *layout, r Representation, toWire bool) {
	if toWire {
		resizeIntegers(dst, src, int(l.width), l.wire(r), l.signed, hostBig, r.big())
	} else {
		resizeIntegers(dst, src, l.wire(r), int(l.width), l.signed, r.big(), hostBig)
	}
}

func resizeIntegers(dst, src []byte, from, to int, signed, srcBig, dstBig bool) {
	for len(src) >= from && len(dst) >= to {
		putInteger(dst[:to], integer(src[:from], srcBig, signed), dstBig)
		dst, src = dst[to:], src[from:]
	}
}

// encodePairs packs value and index of each pair without the padding.
func encodePairs(dst, src []byte, l *layout, r Representation) {
	size, wire, big := int(l.size), l.wire(r), r.big()
	for len(src) >= size && len(dst) >= wire+4 {
		if l.quad {
			encodeQuads(dst[:wire], src[:l.width], l, r)
		} else {
			putInteger(dst[:wire], integer(src[:l.width], hostBig, true), big)
		}
		putInteger(dst[wire:wire+4], integer(src[l.index:l.index+4], hostBig, true), big)
		dst, src = dst[wire+4:], src[size:]
	}
}

// decodePairs is the inverse of encodePairs. The padding becomes zero.
func decodePairs(dst, src []byte, l *layout, r Representation) {
	size, wire, big := int(l.size), l.wire(r), r.big()
	for len(dst) >= size && len(src) >= wire+4 {
		index := integer(src[wire:wire+4], big, true)
		if l.quad {
			clear(dst[l.width:size])
			decodeQuads(dst[:l.width], src[:wire], l, r)
		} else {
			value := integer(src[:wire], big, true)
			clear(dst[:size])
			putInteger(dst[:l.width], value, hostBig)
		}
		putInteger(dst[l.index:l.index+4], index, hostBig)
		dst, src = dst[size:], src[wire+4:]
	}
}

// integer reads 2, 4 or 8 bytes, extended to 64 bits. Floating-point values pass as bit
// patterns of unchanged width.
func integer(b []byte, big, signed bool) uint64 {
	switch len(b) {
	case 2:
		v := binary.LittleEndian.Uint16(b)
		if big {
			v = bits.ReverseBytes16(v)
		}
		if signed {
			return uint64(int16(v))
		}
		return uint64(v)
	case 4:
		v := binary.LittleEndian.Uint32(b)
		if big {
			v = bits.ReverseBytes32(v)
		}
		if signed {
			return uint64(int32(v))
		}
		return uint64(v)
	}
	v := binary.LittleEndian.Uint64(b)
	if big {
		v = bits.ReverseBytes64(v)
	}
	return v
}

func putInteger(b []byte, v uint64, big bool) {
	switch len(b) {
	case 2:
		if big {
			v = uint64(bits.ReverseBytes16(uint16(v)))
		}
		binary.LittleEndian.PutUint16(b, uint16(v))
	case 4:
		if big {
			v = uint64(bits.ReverseBytes32(uint32(v)))
		}
		binary.LittleEndian.PutUint32(b, uint32(v))
	default:
		if big {
			v = bits.ReverseBytes64(v)
		}
		binary.LittleEndian.PutUint64(b, v)
	}
}

const floatWidth = 4

// narrow writes the doubles of this host in src as floats, little-endian, rounded to nearest even
// (IEEE 754-2019, 4.3.1). What is larger than any float becomes an infinity, what is smaller than
// any a zero of its sign, and a NaN stays one, though perhaps another.
func narrow(dst, src []byte) {
	for len(src) >= 8 && len(dst) >= floatWidth {
		x := float32(math.Float64frombits(binary.NativeEndian.Uint64(src)))
		binary.LittleEndian.PutUint32(dst, math.Float32bits(x))
		dst, src = dst[floatWidth:], src[8:]
	}
}

// widen is the inverse of narrow: each float is a double.
func widen(dst, src []byte) {
	for len(dst) >= 8 && len(src) >= floatWidth {
		x := float64(math.Float32frombits(binary.LittleEndian.Uint32(src)))
		binary.NativeEndian.PutUint64(dst, math.Float64bits(x))
		dst, src = dst[8:], src[floatWidth:]
	}
}
