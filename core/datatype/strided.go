package datatype

import "unsafe"

// strided packs or unpacks count runs of n bytes, stride apart; the first one
// from its byte off on.
func (m *mover) strided(base unsafe.Pointer, disp, stride, count, n, off int64) {
	if off > 0 {
		m.run(Byte, base, disp, n, off)
		disp, count = disp+stride, count-1
	}
	whole := min(count, int64(len(m.buf))/n)
	if whole > 0 {
		m.wholeRuns(base, disp, stride, whole, n)
		m.buf = m.buf[whole*n:]
	}
	if whole < count && len(m.buf) > 0 {
		m.run(Byte, base, disp+whole*stride, n, 0)
	}
}

func (m *mover) wholeRuns(base unsafe.Pointer, disp, stride, count, n int64) {
	buf := unsafe.Pointer(unsafe.SliceData(m.buf))
	mem, inc := int(disp), int(stride)
	end := int(count * n)
	if m.mode == packing {
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

// wordlike is what moves as a whole. The platforms allow it at any address.
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

// scattered packs or unpacks runs of n bytes at disps; the first one from its
// byte off on.
func (m *mover) scattered(base unsafe.Pointer, disp int64, disps []int64, n, off int64) {
	if off > 0 {
		m.run(Byte, base, disp+disps[0], n, off)
		disps = disps[1:]
	}
	whole := min(len(disps), len(m.buf)/int(n))
	if whole > 0 {
		m.wholeAt(base, disp, disps[:whole], int(n))
		m.buf = m.buf[whole*int(n):]
	}
	if whole < len(disps) && len(m.buf) > 0 {
		m.run(Byte, base, disp+disps[whole], n, 0)
	}
}

func (m *mover) wholeAt(base unsafe.Pointer, disp int64, disps []int64, n int) {
	buf := unsafe.Pointer(unsafe.SliceData(m.buf))
	pack := m.mode == packing
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
