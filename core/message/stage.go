package message

// The staging memory of one link. It begins small, because a proc of a large job has little
// traffic on most of its links, and grows when it is full, up to a size that holds at least
// a few of the largest packets that are copied.
const (
	firstStage  = 1 << 10
	stageSize   = 64 << 10
	stageGrowth = 4
)

// stage is a link's staging memory: a ring in which every allocation is in one piece. It is
// consumed in the order of allocation.
type stage struct {
	buf     []byte
	r, w    int // bytes in use are [r,w), or [r,end) and [0,w) when wrapped
	end     int
	wrapped bool
}

// alloc returns n bytes and their offset, or nil if there is no room until something is
// consumed. An empty stage has room for every n up to its size.
func (s *stage) alloc(n int) (b []byte, at int) {
	switch {
	case !s.wrapped && len(s.buf)-s.w >= n:
	case !s.wrapped && s.r >= n:
		s.wrapped, s.end, s.w = true, s.w, 0
	case s.wrapped && s.r-s.w >= n:
	default:
		return nil, 0
	}
	at = s.w
	s.w += n
	return s.buf[at:s.w], at
}

// consume frees the n oldest bytes, which must not straddle the ring's end.
func (s *stage) consume(n int) {
	s.r += n
	if s.wrapped && s.r == s.end {
		s.r, s.wrapped = 0, false
	}
	if !s.wrapped && s.r == s.w {
		s.r, s.w = 0, 0
	}
}
