package datatype

import (
	"encoding/binary"
	"unsafe"
)

// strided moves count runs like x, stride bytes apart, of elements of the given width,
// beginning with byte off of the first.
func (m *mover) strided(x *node, width int, base unsafe.Pointer, disp, stride, count, off int64) {
	n := x.n
	if off > 0 {
		m.run(x.kind, base, disp, n, off)
		disp, count = disp+stride, count-1
	}
	whole := min(count, int64(len(m.buf))/n)
	if whole > 0 {
		if width == 1 {
			m.wholeRuns(base, disp, stride, whole, n)
		} else {
			m.reversedRuns(width, base, disp, stride, whole, int(n))
		}
		m.buf = m.buf[whole*n:]
	}
	if whole < count && len(m.buf) > 0 {
		m.run(x.kind, base, disp+whole*stride, n, 0)
	}
}

func (m *mover) wholeRuns(base unsafe.Pointer, disp, stride, count, n int64) {
	buf := unsafe.Pointer(unsafe.SliceData(m.buf))
	mem, inc := int(disp), int(stride)
	end := int(count * n)
	if m.mode.outward() {
		switch n {
		case 4:
			gather[uint32](buf, base, mem, inc, end)
		case 8:
			gather[uint64](buf, base, mem, inc, end)
		case 16:
			gather[[2]uint64](buf, base, mem, inc, end)
		default:
			for at := 0; at < end; at += int(n) {
				copy(m.buf[at:at+int(n)], memory(base, int64(mem), n))
				mem += inc
			}
		}
		return
	}
	switch n {
	case 4:
		scatter[uint32](base, buf, mem, inc, end)
	case 8:
		scatter[uint64](base, buf, mem, inc, end)
	case 16:
		scatter[[2]uint64](base, buf, mem, inc, end)
	default:
		for at := 0; at < end; at += int(n) {
			copy(memory(base, int64(mem), n), m.buf[at:at+int(n)])
			mem += inc
		}
	}
}

// wordlike is the types that are moved as a whole. The supported platforms allow that at
// any address.
type wordlike interface{ uint32 | uint64 | [2]uint64 }

func gather[W wordlike](buf, base unsafe.Pointer, mem, stride, end int) {
	var w W
	for at := 0; at < end; at += int(unsafe.Sizeof(w)) {
		*(*W)(unsafe.Add(buf, at)) = *(*W)(unsafe.Add(base, mem))
		mem += stride
	}
}

func scatter[W wordlike](base, buf unsafe.Pointer, mem, stride, end int) {
	var w W
	for at := 0; at < end; at += int(unsafe.Sizeof(w)) {
		*(*W)(unsafe.Add(base, mem)) = *(*W)(unsafe.Add(buf, at))
		mem += stride
	}
}

// scattered moves runs like x at disps, of elements of the given width, beginning with byte
// off of the first.
func (m *mover) scattered(x *node, width int, base unsafe.Pointer, disp int64, disps []int64, off int64) {
	n := int(x.n)
	if off > 0 {
		m.run(x.kind, base, disp+disps[0], x.n, off)
		disps = disps[1:]
	}
	whole := min(len(disps), len(m.buf)/n)
	if whole > 0 {
		if width == 1 {
			m.wholeAt(base, disp, disps[:whole], n)
		} else {
			for i, d := range disps[:whole] {
				m.reverse(width, m.buf[i*n:(i+1)*n], memory(base, disp+d, x.n))
			}
		}
		m.buf = m.buf[whole*n:]
	}
	if whole < len(disps) && len(m.buf) > 0 {
		m.run(x.kind, base, disp+disps[whole], x.n, 0)
	}
}

// reversedRuns is wholeRuns with the bytes of elements of the given width reversed.
func (m *mover) reversedRuns(width int, base unsafe.Pointer, disp, stride, count int64, n int) {
	for i := range int(count) {
		m.reverse(width, m.buf[i*n:(i+1)*n], memory(base, disp, int64(n)))
		disp += stride
	}
}

func (m *mover) reverse(width int, stream, mem []byte) {
	if !m.mode.outward() {
		stream, mem = mem, stream
	}
	switch {
	case width == 8 && len(mem) == 8:
		binary.LittleEndian.PutUint64(stream, binary.BigEndian.Uint64(mem))
	case width == 4 && len(mem) == 4:
		binary.LittleEndian.PutUint32(stream, binary.BigEndian.Uint32(mem))
	default:
		swap(stream, mem, width)
	}
}

func (m *mover) wholeAt(base unsafe.Pointer, disp int64, disps []int64, n int) {
	buf := unsafe.Pointer(unsafe.SliceData(m.buf))
	pack := m.mode.outward()
	switch {
	case pack && n == 4:
		gatherAt[uint32](buf, base, disp, disps)
	case pack && n == 8:
		gatherAt[uint64](buf, base, disp, disps)
	case pack && n == 16:
		gatherAt[[2]uint64](buf, base, disp, disps)
	case n == 4:
		scatterAt[uint32](base, buf, disp, disps)
	case n == 8:
		scatterAt[uint64](base, buf, disp, disps)
	case n == 16:
		scatterAt[[2]uint64](base, buf, disp, disps)
	case pack:
		for i, d := range disps {
			copy(m.buf[i*n:(i+1)*n], memory(base, disp+d, int64(n)))
		}
	default:
		for i, d := range disps {
			copy(memory(base, disp+d, int64(n)), m.buf[i*n:(i+1)*n])
		}
	}
}

func gatherAt[W wordlike](buf, base unsafe.Pointer, disp int64, disps []int64) {
	var w W
	for i, d := range disps {
		*(*W)(unsafe.Add(buf, i*int(unsafe.Sizeof(w)))) = *(*W)(unsafe.Add(base, int(disp+d)))
	}
}

func scatterAt[W wordlike](base, buf unsafe.Pointer, disp int64, disps []int64) {
	var w W
	for i, d := range disps {
		*(*W)(unsafe.Add(base, int(disp+d))) = *(*W)(unsafe.Add(buf, i*int(unsafe.Sizeof(w))))
	}
}

// tile reports whether x is a few runs, such as the members of a C struct. Loops of such nodes are
// moved by tiles, which is faster.
func (x *node) tile() bool {
	return x.op == opList && x.first != nil && x.child.dense(x.stride) && len(x.disps) <= 64
}

// tiles packs or unpacks count items of x, stride bytes apart, as many as are whole in the
// part, and returns how many.
func (m *mover) tiles(x *node, base unsafe.Pointer, disp, stride, count int64) int64 {
	count = min(count, int64(len(m.buf))/x.size[classMemory])
	disp += x.disp + x.child.disp
	for range count {
		for i, at := range x.disps {
			m.shortRun(base, disp+at, (x.first[i+1]-x.first[i])*x.stride)
		}
		disp += stride
	}
	return count
}

// shortRun packs or unpacks n bytes, which the part must have.
func (m *mover) shortRun(base unsafe.Pointer, disp, n int64) {
	mem, buf := unsafe.Add(base, int(disp)), unsafe.Pointer(unsafe.SliceData(m.buf))
	if m.mode == packing {
		mem, buf = buf, mem
	}
	switch n { // copies n bytes from buf to mem
	case 4:
		*(*uint32)(mem) = *(*uint32)(buf)
	case 8:
		*(*uint64)(mem) = *(*uint64)(buf)
	default:
		copy(unsafe.Slice((*byte)(mem), int(n)), unsafe.Slice((*byte)(buf), int(n)))
	}
	m.buf = m.buf[n:]
}
