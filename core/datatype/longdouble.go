package datatype

import (
	"encoding/binary"
	"unsafe"
)

// longDigits returns how many binary digits this host's long double has. Go has no such type: the
// operations use integers, and give the results of the processor.
func longDigits() int {
	if x87 {
		return 113 - x87Dropped
	}
	return 113
}

// overLong makes a loop of a function that combines single elements of size bytes.
func overLong(k Kind, f func(in, inout []byte)) loop {
	return func(in, inout unsafe.Pointer, n int) {
		size := k.Size()
		for i := range n {
			f(unsafe.Slice((*byte)(unsafe.Add(in, i*size)), size), unsafe.Slice((*byte)(unsafe.Add(inout, i*size)), size))
		}
	}
}

func longArith(w which) loop {
	digits := longDigits()
	if w == addition {
		return overLong(LongDouble, func(in, inout []byte) {
			storeLongDouble(inout, loadLongDouble(in).plus(loadLongDouble(inout), digits))
		})
	}
	return overLong(LongDouble, func(in, inout []byte) {
		storeLongDouble(inout, loadLongDouble(in).by(loadLongDouble(inout), digits))
	})
}

func longComplexArith(w which) loop {
	digits, width := longDigits(), LongDouble.Size()
	if w == addition {
		return overLong(ComplexLongDouble, func(in, inout []byte) {
			storeLongDouble(inout[:width], loadLongDouble(in).plus(loadLongDouble(inout), digits))
			storeLongDouble(inout[width:], loadLongDouble(in[width:]).plus(loadLongDouble(inout[width:]), digits))
		})
	}
	return overLong(ComplexLongDouble, func(in, inout []byte) {
		a, b, c, d := loadLongDouble(in), loadLongDouble(in[width:]), loadLongDouble(inout), loadLongDouble(inout[width:])
		storeLongDouble(inout[:width], a.by(c, digits).plus(b.by(d, digits).negated(), digits))
		storeLongDouble(inout[width:], a.by(d, digits).plus(b.by(c, digits), digits))
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

func longExtreme(w which) loop {
	return overLong(LongDouble, func(in, inout []byte) {
		if longBeats(loadLongDouble(in), loadLongDouble(inout), w == maxs) {
			copy(inout, in)
		}
	})
}

func longLocated(w which) loop {
	return overLong(PairLongDouble, func(in, inout []byte) {
		at := layouts[PairLongDouble].index
		a, b := loadLongDouble(in), loadLongDouble(inout)
		lower := int32(binary.NativeEndian.Uint32(in[at:])) < int32(binary.NativeEndian.Uint32(inout[at:]))
		larger := w == maxlocs
		if longBeats(a, b, larger) || lower && !longBeats(b, a, larger) {
			copy(inout, in)
		}
	})
}
