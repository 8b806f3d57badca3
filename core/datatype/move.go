package datatype

import "unsafe"

type mode uint8

const (
	packing mode = iota
	unpacking
	encoding
	decoding
)

// outward reports whether the stream is written, not read.
func (m mode) outward() bool { return m == packing || m == encoding }

// mover moves data between memory and a part of the stream, of which buf is the rest.
type mover struct {
	buf   []byte
	mode  mode
	class class
	rep   Representation
	carry *Carry
	stuck bool // decoding: stopped at an incomplete element, as there is no Carry to keep its bytes
}

// items moves count items of d, whose node is x. off is the byte of their stream with which buf
// begins. It returns how many bytes of buf were used.
func (m *mover) items(x *node, d *def, base unsafe.Pointer, count int, off int64) int {
	if x == nil || count <= 0 || off >= int64(count)*x.size[m.class] {
		return 0
	}
	before := len(m.buf)
	all := x.times(int64(count), d.extent())
	m.move(&all, base, 0, off)
	return before - len(m.buf)
}

func (m *mover) done() bool { return len(m.buf) == 0 || m.stuck }

// move moves the data of node x, from byte off of x's own stream on. disp is where the origin of
// x's parent is, in bytes from base. Only addresses of elements are computed, since what lies
// between them need not be valid memory.
func (m *mover) move(x *node, base unsafe.Pointer, disp, off int64) {
	disp += x.disp
	switch x.op {
	case opRun:
		m.run(x.kind, base, disp, x.n, off)
	case opLoop:
		m.loop(x, base, disp, off)
	case opList:
		m.list(x, base, disp, off)
	case opSeq:
		i := x.part(off, m.class)
		off -= x.starts[i][m.class]
		for ; i < len(x.parts) && !m.done(); i++ {
			m.move(&x.parts[i], base, disp, off)
			off = 0
		}
	}
}

func (m *mover) loop(x *node, base unsafe.Pointer, disp, off int64) {
	i, off := x.child.split(off, m.class)
	disp += i * x.stride
	if x.child.op == opRun {
		if width := m.width(x.child.kind); width > 0 {
			m.strided(x.child, width, base, disp+x.child.disp, x.stride, x.n-i, off)
			return
		}
	}
	for ; i < x.n && !m.done(); i++ {
		if off == 0 && m.mode <= unpacking && x.child.tile() {
			whole := m.tiles(x.child, base, disp, x.stride, x.n-i)
			if i, disp = i+whole, disp+whole*x.stride; i == x.n || m.done() {
				return
			}
		}
		m.move(x.child, base, disp, off)
		disp, off = disp+x.stride, 0
	}
}

func (m *mover) list(x *node, base unsafe.Pointer, disp, off int64) {
	item, off := x.child.split(off, m.class)
	if x.first == nil {
		if x.child.op == opRun {
			if width := m.width(x.child.kind); width > 0 {
				m.scattered(x.child, width, base, disp+x.child.disp, x.disps[item:], off)
				return
			}
		}
		for i := item; i < x.n && !m.done(); i++ {
			m.move(x.child, base, disp+x.disps[i], off)
			off = 0
		}
		return
	}
	i := x.block(item)
	item -= x.first[i]
	for ; i < len(x.disps) && !m.done(); i++ {
		m.blockOf(x, base, disp+x.disps[i], item, x.first[i+1]-x.first[i], off)
		item, off = 0, 0
	}
}

// blockOf moves n items of a list's block, beginning with item.
func (m *mover) blockOf(x *node, base unsafe.Pointer, disp, item, n, off int64) {
	if x.child.dense(x.stride) {
		m.run(x.child.kind, base, disp+x.child.disp, n*x.stride, item*x.child.size[m.class]+off)
		return
	}
	for ; item < n && !m.done(); item++ {
		m.move(x.child, base, disp+item*x.stride, off)
		off = 0
	}
}

// split returns how many whole items of x precede byte off of a stream of them, and the
// offset of that byte in the next one.
func (x *node) split(off int64, c class) (items, rest int64) {
	if off == 0 {
		return 0, 0
	}
	size := x.size[c]
	return off / size, off % size
}

func (x *node) part(off int64, c class) int {
	lo, hi := 0, len(x.starts)
	for hi-lo > 1 {
		if mid := int(uint(lo+hi) / 2); x.starts[mid][c] <= off {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

func (x *node) block(item int64) int {
	lo, hi := 0, len(x.disps)
	for hi-lo > 1 {
		if mid := int(uint(lo+hi) / 2); x.first[mid] <= item {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// width returns how elements of kind are moved: 1 means unchanged, a larger number that
// groups of so many bytes are reversed, 0 that more has to be done.
func (m *mover) width(kind Kind) int {
	switch {
	case m.mode <= unpacking || identities[m.rep]>>kind&1 != 0:
		return 1
	case reversed[m.rep]>>kind&1 != 0:
		return int(layouts[kind].width)
	}
	return 0
}

// reversed has, for each representation, the kinds for which it only reverses the bytes of the
// components, a bit for each.
var reversed = func() (all [representations]uint64) {
	for i := range all {
		r := Representation(i)
		for k := range kinds {
			l := &layouts[k]
			if k.Valid() && k != Bool && !l.quad && l.index == 0 && !r.Identity(k) && !r.narrows(k) && l.wire(r) == int(l.width) {
				all[r] |= 1 << k
			}
		}
	}
	return all
}()

func (m *mover) run(kind Kind, base unsafe.Pointer, disp, n, off int64) {
	switch m.mode {
	case packing:
		m.buf = m.buf[copy(m.buf, memory(base, disp+off, n-off)):]
	case unpacking:
		m.buf = m.buf[copy(memory(base, disp+off, n-off), m.buf):]
	case encoding:
		m.encode(kind, base, disp, n, off)
	case decoding:
		m.decode(kind, base, disp, n, off)
	}
}

func memory(base unsafe.Pointer, disp, n int64) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(base, int(disp))), int(n))
}

func (m *mover) encode(kind Kind, base unsafe.Pointer, disp, n, off int64) {
	size, wire := int64(kind.Size()), int64(m.rep.Size(kind))
	i, cut := off/wire, off%wire
	if cut > 0 {
		m.encodePart(kind, memory(base, disp+i*size, size), cut)
		i++
	}
	if whole := min(n/size-i, int64(len(m.buf))/wire); whole > 0 {
		if mem := memory(base, disp+i*size, whole*size); reversed[m.rep]>>kind&1 != 0 {
			swap(m.buf[:len(mem)], mem, int(layouts[kind].width))
		} else {
			_ = m.rep.Encode(m.buf, mem, kind, int(whole)) // cannot fail: the sizes match
		}
		m.buf = m.buf[whole*wire:]
		i += whole
	}
	if i < n/size && len(m.buf) > 0 {
		m.encodePart(kind, memory(base, disp+i*size, size), 0)
	}
}

// encodePart encodes one element from its byte cut on, as far as there is room.
func (m *mover) encodePart(kind Kind, element []byte, cut int64) {
	var b [40]byte
	_ = m.rep.Encode(b[:], element, kind, 1)
	m.buf = m.buf[copy(m.buf, b[cut:m.rep.Size(kind)]):]
}

func (m *mover) decode(kind Kind, base unsafe.Pointer, disp, n, off int64) {
	size, wire := int64(kind.Size()), int64(m.rep.Size(kind))
	i, cut := off/wire, off%wire
	if cut > 0 {
		if !m.decodePart(kind, memory(base, disp+i*size, size), int(cut)) {
			return
		}
		i++
	}
	if whole := min(n/size-i, int64(len(m.buf))/wire); whole > 0 {
		if mem := memory(base, disp+i*size, whole*size); reversed[m.rep]>>kind&1 != 0 {
			swap(mem, m.buf[:len(mem)], int(layouts[kind].width))
		} else {
			_ = m.rep.Decode(mem, m.buf, kind, int(whole))
		}
		m.buf = m.buf[whole*wire:]
		i += whole
	}
	if i < n/size && len(m.buf) > 0 {
		m.decodePart(kind, memory(base, disp+i*size, size), 0)
	}
}

// decodePart collects bytes of one element from its byte cut on, and decodes it once all
// have come.
func (m *mover) decodePart(kind Kind, element []byte, cut int) bool {
	c := m.carry
	if c == nil || cut > 0 && c.n != cut {
		m.stuck = true
		return false
	}
	wire := m.rep.Size(kind)
	c.n = cut + copy(c.b[cut:wire], m.buf)
	m.buf = m.buf[c.n-cut:]
	if c.n < wire {
		return false
	}
	c.n = 0
	_ = m.rep.Decode(element, c.b[:wire], kind, 1)
	return true
}
