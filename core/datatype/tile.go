package datatype

import "unsafe"

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
