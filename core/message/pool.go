package message

import "math/bits"

const maxPooled = 16 << 20

const (
	minClass = 6  // 64 bytes
	maxClass = 26 // 64 MiB; nothing larger is kept
)

// buffers has memory for payloads that have no receive yet, in sizes that are powers of
// two.
type buffers struct {
	free [maxClass + 1][][]byte
	kept int // bytes kept in free
}

func sizeClass(n int) int { return max(minClass, bits.Len(uint(n-1))) }

// get returns n bytes with undefined contents.
func (p *buffers) get(n int) []byte {
	if n == 0 {
		return nil
	}
	c := sizeClass(n)
	if c > maxClass {
		return make([]byte, n)
	}
	l := len(p.free[c])
	if l == 0 {
		return make([]byte, n, 1<<c)
	}
	b := p.free[c][l-1]
	p.free[c] = p.free[c][:l-1]
	p.kept -= 1 << c
	return b[:n]
}

func (p *buffers) put(b []byte) {
	if cap(b) == 0 {
		return
	}
	c := sizeClass(cap(b))
	if c > maxClass || cap(b) != 1<<c || p.kept+cap(b) > maxPooled {
		return
	}
	p.free[c] = append(p.free[c], b)
	p.kept += cap(b)
}

type slab[T any] struct {
	free  []*T
	chunk []T
	size  int // size of the last chunk
}

// Records are allocated in chunks, which become larger with the number of records.
const (
	firstChunk = 2
	chunkLen   = 32
)

func (s *slab[T]) get() *T {
	if n := len(s.free); n > 0 {
		v := s.free[n-1]
		s.free = s.free[:n-1]
		return v
	}
	if len(s.chunk) == 0 {
		s.size = min(max(firstChunk, 2*s.size), chunkLen)
		s.chunk = make([]T, s.size)
	}
	v := &s.chunk[0]
	s.chunk = s.chunk[1:]
	return v
}

func (s *slab[T]) put(v *T) { s.free = append(s.free, v) }
