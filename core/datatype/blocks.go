package datatype

// Blocks calls yield for the bytes of one item of t, in the order of its stream: count runs of n
// bytes, of which the first begins disp bytes from the origin, and each other one stride bytes
// after the one before. Runs that touch each other need not be joined. The time does not depend on
// count. The type has been committed. Blocks ends when yield returns false.
func Blocks(t *Type, yield func(disp, n, stride, count int64) bool) {
	if x := defOf(t).program().bytes; x != nil {
		x.blocks(0, yield)
	}
}

// blocks does Blocks for a node, the origin of whose parent is at disp.
func (x *node) blocks(disp int64, yield func(disp, n, stride, count int64) bool) bool {
	disp += x.disp
	switch x.op {
	case opRun:
		return yield(disp, x.n, x.n, 1)
	case opLoop:
		return x.child.repeated(disp, x.stride, x.n, yield)
	case opList:
		for i, d := range x.disps {
			n := int64(1)
			if x.first != nil {
				n = x.first[i+1] - x.first[i]
			}
			if !x.child.repeated(disp+d, x.stride, n, yield) {
				return false
			}
		}
	case opSeq:
		for i := range x.parts {
			if !x.parts[i].blocks(disp, yield) {
				return false
			}
		}
	}
	return true
}

// repeated does blocks for count nodes, each stride bytes behind the one before.
func (x *node) repeated(disp, stride, count int64, yield func(disp, n, stride, count int64) bool) bool {
	if x.op == opRun {
		return yield(disp+x.disp, x.n, stride, count)
	}
	for i := range count {
		if !x.blocks(disp+i*stride, yield) {
			return false
		}
	}
	return true
}
