package datatype

import (
	"encoding/binary"
	"unsafe"
)

// wide describes a kind of real numbers that Go has no type for, and the kind of complex numbers
// made of two of these. Its operations compute with integers, and have the same results as those of
// a processor.
type wide struct {
	real, complex Kind
	digits        int // binary digits
	load          func(b []byte) quad
	store         func(b []byte, q quad)
}

func longs() *wide {
	digits := quadDigits
	if x87 {
		digits -= x87Dropped
	}
	return &wide{LongDouble, ComplexLongDouble, digits, loadLongDouble, storeLongDouble}
}

func quads() *wide {
	return &wide{Float128, Complex256, quadDigits,
		func(b []byte) quad { return getQuad(b, hostBig) },
		func(b []byte, q quad) { putQuad(b, q, hostBig) }}
}

func overElements(k Kind, f func(in, inout []byte)) loop {
	return func(in, inout unsafe.Pointer, n int) {
		size := k.Size()
		for i := range n {
			f(unsafe.Slice((*byte)(unsafe.Add(in, i*size)), size), unsafe.Slice((*byte)(unsafe.Add(inout, i*size)), size))
		}
	}
}

func (w *wide) arith(op which) loop {
	if op == addition {
		return overElements(w.real, func(in, inout []byte) {
			w.store(inout, w.load(in).plus(w.load(inout), w.digits))
		})
	}
	return overElements(w.real, func(in, inout []byte) {
		w.store(inout, w.load(in).by(w.load(inout), w.digits))
	})
}

func (w *wide) complexArith(op which) loop {
	width := w.real.Size()
	if op == addition {
		return overElements(w.complex, func(in, inout []byte) {
			w.store(inout[:width], w.load(in).plus(w.load(inout), w.digits))
			w.store(inout[width:], w.load(in[width:]).plus(w.load(inout[width:]), w.digits))
		})
	}
	return overElements(w.complex, func(in, inout []byte) {
		a, b, c, d := w.load(in), w.load(in[width:]), w.load(inout), w.load(inout[width:])
		w.store(inout[:width], a.by(c, w.digits).plus(b.by(d, w.digits).negated(), w.digits))
		w.store(inout[width:], a.by(d, w.digits).plus(b.by(c, w.digits), w.digits))
	})
}

// longBeats reports whether a replaces b in Max, Min, MaxLoc and MinLoc. The caller decides between
// equal values.
func longBeats(a, b quad, larger bool) bool {
	if a.nan() || b.nan() {
		return a.nan() && !b.nan()
	}
	if larger {
		return b.less(a)
	}
	return a.less(b)
}

func (w *wide) extreme(op which) loop {
	return overElements(w.real, func(in, inout []byte) {
		if longBeats(w.load(in), w.load(inout), op == maxs) {
			copy(inout, in)
		}
	})
}

func longLocated(w which) loop {
	return overElements(PairLongDouble, func(in, inout []byte) {
		at := layouts[PairLongDouble].index
		a, b := loadLongDouble(in), loadLongDouble(inout)
		lower := int32(binary.NativeEndian.Uint32(in[at:])) < int32(binary.NativeEndian.Uint32(inout[at:]))
		larger := w == maxlocs
		if longBeats(a, b, larger) || lower && !longBeats(b, a, larger) {
			copy(inout, in)
		}
	})
}
