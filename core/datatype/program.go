package datatype

import "math/bits"

// program is the compiled form of a typemap, by which Pack, Unpack, Encode and Decode go through an
// item. Commit makes it (MPI-4.1, 5.1.9).
type program struct {
	bytes *node // root of a tree whose runs are bytes; nil: no bytes to move
	kinds *node // root of a tree whose runs are elements of one kind
}

type op uint8

const (
	opRun  op = iota // n bytes of memory that are elements of kind
	opLoop           // child n times, stride bytes apart
	opList           // blocks at disps; the children of a block are stride bytes apart
	opSeq            // the parts in turn
)

// node is a part of a typemap: disp bytes from the origin of its parent.
type node struct {
	op     op
	kind   Kind
	disp   int64
	n      int64
	stride int64
	child  *node
	disps  []int64          // displacements of the blocks
	first  []int64          // number of items before each block, and in all; nil: a block is one child
	parts  []node           // in the order of the stream
	starts [][classes]int64 // stream bytes before each part
	size   [classes]int64   // stream bytes, by class
}

func (d *def) program() *program {
	if p := d.prog.Load(); p != nil {
		return p
	}
	p := &program{kinds: build(d, true)}
	p.bytes = p.kinds
	if bits.OnesCount64(d.kinds) > 1 {
		p.bytes = build(d, false)
	}
	d.prog.Store(p)
	return p
}

// build makes the node of one item of d; nil if it has no elements. With byKind only runs of one
// kind are joined; otherwise neighbouring runs of any kinds become runs of bytes.
func build(d *def, byKind bool) *node {
	if d.elements == 0 {
		return nil
	}
	switch d.form {
	case formBasic:
		n := d.wire[classMemory]
		if byKind {
			return &node{op: opRun, kind: d.kind, n: n, size: d.wire}
		}
		return &node{op: opRun, kind: Byte, n: n, size: [classes]int64{n, n, n, n}}
	case formAlias:
		return build(d.child, byKind)
	case formStruct:
		return buildStruct(d, byKind)
	default:
		child := build(d.child, byKind)
		if d.disps == nil {
			return repeat(repeat(child, d.length, d.child.extent()), d.count, d.stride)
		}
		return listOf(d, child, d.child.extent())
	}
}

func buildStruct(d *def, byKind bool) *node {
	var parts []node
	var last *def
	var child *node
	for i, c := range d.children {
		if c != last {
			child, last = build(c, byKind), c
		}
		if part := repeat(child, d.items(i), c.extent()); part != nil {
			parts = append(parts, *part.at(d.disps[i]))
		}
	}
	return seqOf(parts)
}

func (x *node) at(disp int64) *node {
	y := *x
	y.disp += disp
	return &y
}

// repeat returns n times x, stride bytes apart.
func repeat(x *node, n, stride int64) *node {
	if x == nil || n <= 0 {
		return nil
	}
	y := x.times(n, stride)
	return &y
}

// times is repeat without an allocation; n > 0.
func (x *node) times(n, stride int64) node {
	if n == 1 {
		return *x
	}
	y := *x
	for i := range y.size {
		y.size[i] *= n
	}
	switch {
	case x.op == opRun && stride == x.n:
		y.n *= n
	case x.op == opLoop && stride == x.n*x.stride:
		y.n *= n
	default:
		y = node{op: opLoop, n: n, stride: stride, child: x, size: y.size}
	}
	return y
}

// dense reports whether items of x, stride bytes apart, have no gaps.
func (x *node) dense(stride int64) bool { return x.op == opRun && x.n == stride }

// listOf makes a node of the blocks of x that d lists. Blocks that follow each other are joined.
func listOf(d *def, x *node, stride int64) *node {
	disps, first := make([]int64, 0, len(d.disps)), make([]int64, 1, len(d.disps)+1)
	next, total := int64(0), int64(0) // displacement of an adjacent block, number of items so far
	for i := range d.disps {
		n := d.items(i)
		if n == 0 {
			continue
		}
		at := d.disps[i] * d.unit
		if len(disps) > 0 && at == next {
			first = first[:len(first)-1]
		} else {
			disps = append(disps, at)
			next = at
		}
		total += n
		next += n * stride
		first = append(first, total)
	}
	return blocksOf(x, stride, disps, first)
}

// blocksOf makes a node of blocks of x: a loop if they are regularly spaced.
func blocksOf(x *node, stride int64, disps, first []int64) *node {
	blocks := int64(len(disps))
	if blocks == 0 {
		return nil
	}
	n := first[1]
	for i := range disps {
		if first[i+1]-first[i] != n {
			return irregular(x, stride, disps, first)
		}
	}
	block := repeat(x, n, stride)
	if blocks == 1 {
		return block.at(disps[0])
	}
	step := disps[1] - disps[0]
	for i := range disps[1:] {
		if disps[i+1]-disps[i] != step {
			return irregular(block, 0, disps, nil)
		}
	}
	return repeat(block, blocks, step).at(disps[0])
}

func irregular(x *node, stride int64, disps, first []int64) *node {
	y := &node{op: opList, n: int64(len(disps)), stride: stride, child: x, disps: fitted(disps), first: fitted(first)}
	items := y.n
	if first != nil {
		items = first[len(first)-1]
	}
	for i := range y.size {
		y.size[i] = items * x.size[i]
	}
	return y
}

// fitted returns s without unused capacity, if that is large.
func fitted(s []int64) []int64 {
	if cap(s)-len(s) <= len(s)/8 {
		return s
	}
	return append(make([]int64, 0, len(s)), s...)
}

// seqOf makes a node of parts. Parts that follow each other in memory are joined.
func seqOf(parts []node) *node {
	var flat []node
	for i := range parts {
		flat = appendPart(flat, &parts[i], 0)
	}
	switch {
	case len(flat) == 0:
		return nil
	case len(flat) == 1:
		return &flat[0]
	}
	if y := runsOf(flat); y != nil {
		return y
	}
	y := &node{op: opSeq, parts: flat, starts: make([][classes]int64, len(flat))}
	for i := range flat {
		y.starts[i] = y.size
		for c := range y.size {
			y.size[c] += flat[i].size[c]
		}
	}
	return y
}

func appendPart(flat []node, x *node, disp int64) []node {
	if x.op == opSeq {
		for i := range x.parts {
			flat = appendPart(flat, &x.parts[i], disp+x.disp)
		}
		return flat
	}
	y := *x
	y.disp += disp
	if len(flat) > 0 {
		last := &flat[len(flat)-1]
		if last.op == opRun && y.op == opRun && last.kind == y.kind && last.disp+last.n == y.disp {
			last.n += y.n
			for c := range y.size {
				last.size[c] += y.size[c]
			}
			return flat
		}
	}
	return append(flat, y)
}

// runsOf makes a list of parts that are all runs of one kind; nil if they are not.
func runsOf(parts []node) *node {
	kind := parts[0].kind
	for i := range parts {
		if parts[i].op != opRun || parts[i].kind != kind {
			return nil
		}
	}
	unit := &node{op: opRun, kind: kind, n: int64(kind.Size())}
	for c := range unit.size {
		unit.size[c] = parts[0].size[c] / (parts[0].n / unit.n)
	}
	disps, first := make([]int64, len(parts)), make([]int64, len(parts)+1)
	for i := range parts {
		disps[i], first[i+1] = parts[i].disp, first[i]+parts[i].n/unit.n
	}
	return blocksOf(unit, unit.n, disps, first)
}
