package startup

import (
	"encoding/binary"
	"fmt"
	"unsafe"
)

// A table of procs is a header: magic, and the numbers of procs, runs, cards and offsets, and of
// the bytes of all cards; and then the slices of a Procs: runs, order, ends, offsets, text. All of
// it is in the order and layout of the machine, where programs of one release share it as it is.
const (
	tableMagic  = "impiprcs"
	tableHeader = 8 + 5*8
	runSize     = int(unsafe.Sizeof(procRun{}))
	maxText     = MaxAnswer
)

// TableLimit is the most bytes that a table can have.
const TableLimit = tableHeader + MaxProcs*(runSize+4+4+2) + maxText

// Table returns the procs as bytes that OpenProcs accepts. Index must have been called.
func (p *Procs) Table() []byte {
	p.Index()
	b := make([]byte, tableHeader, tableHeader+len(p.runs)*(runSize+4)+len(p.ends)*4+len(p.offsets)*2+len(p.text))
	copy(b, tableMagic)
	for i, n := range []int{p.n, len(p.runs), len(p.ends), len(p.offsets), len(p.text)} {
		binary.NativeEndian.PutUint64(b[8+8*i:], uint64(n))
	}
	b = append(append(b, bytesOf(p.runs)...), bytesOf(p.order)...)
	b = append(append(b, bytesOf(p.ends)...), bytesOf(p.offsets)...)
	return append(b, p.text...)
}

// OpenProcs makes a list that refers to the bytes of a table, which must never change. It checks
// everything that methods rely on, except offsets, so that its time grows with the number of runs:
// with wrong offsets procs have wrong PIDs, and are found by these or not at all. An error wraps
// ErrValue.
func OpenProcs(b []byte) (p Procs, err error) {
	if len(b) < tableHeader || string(b[:8]) != tableMagic || uintptr(unsafe.Pointer(&b[0]))%8 != 0 {
		return p, fmt.Errorf("%w: table of procs: %d bytes that are none, or are one of another version", ErrValue, len(b))
	}
	var n [5]uint64
	for i := range n {
		n[i] = binary.NativeEndian.Uint64(b[8+8*i:])
	}
	procs, runs, cards, offsets, text := n[0], n[1], n[2], n[3], n[4]
	if procs < 1 || procs > MaxProcs || runs < 1 || runs > procs || cards > runs || offsets > procs || text > maxText ||
		uint64(len(b)) != tableHeader+runs*uint64(runSize+4)+cards*4+offsets*2+text {
		return p, fmt.Errorf("%w: table of procs: %d bytes for %d procs in %d runs, %d cards of %d bytes and %d offsets", ErrValue, len(b), procs, runs, cards, text, offsets)
	}
	p.n, b = int(procs), b[tableHeader:]
	p.runs, b = sliceOf[procRun](b, runs)
	p.order, b = sliceOf[int32](b, runs)
	p.ends, b = sliceOf[uint32](b, cards)
	p.offsets, b = sliceOf[int16](b, offsets)
	p.text = b[:len(b):len(b)]
	if err := p.check(); err != nil {
		return Procs{}, fmt.Errorf("%w: table of procs: %w", ErrValue, err)
	}
	return p, nil
}

func (p *Procs) check() error {
	last := uint32(0)
	for i, end := range p.ends {
		if end < last || int64(end) > int64(len(p.text)) {
			return fmt.Errorf("card %d ends at %d of %d, after %d", i, end, len(p.text), last)
		}
		last = end
	}
	next := int64(0)
	for k := range p.runs {
		r := &p.runs[k]
		if int64(r.first) != next || r.n < 1 || r.step < 0 || r.step > maxStep || r.step == 0 && r.n > 1 || r.card < absent || int(r.card) >= len(p.ends) ||
			r.offsets < absent || r.offsets != absent && int64(r.offsets)+int64(r.n) > int64(len(p.offsets)) {
			return fmt.Errorf("run %d of %d procs from rank %d on, not %d, has step %d, card %d of %d, and offsets from %d of %d on",
				k, r.n, r.first, next, r.step, r.card, len(p.ends), r.offsets, len(p.offsets))
		}
		next += int64(r.n)
	}
	if next != int64(p.n) {
		return fmt.Errorf("the runs have %d procs, not %d", next, p.n)
	}
	for i, k := range p.order {
		if k < 0 || int(k) >= len(p.runs) || i > 0 && p.compare(p.order[i-1], k) >= 0 {
			return fmt.Errorf("run %d of %d is out of order", k, len(p.runs))
		}
	}
	return nil
}

// flat are the types of which any bytes are a valid value.
type flat interface {
	procRun | int32 | uint32 | int16
}

func bytesOf[T flat](s []T) []byte {
	var x T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(x)))
}

// sliceOf returns the first n values of b, which is aligned for them, and the rest of b.
func sliceOf[T flat](b []byte, n uint64) ([]T, []byte) {
	var x T
	size := n * uint64(unsafe.Sizeof(x))
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n), b[size:]
}
