package agent

// chunk is memory that a link is read into, or that short runs are copied to.
// Whoever refers to a part of it counts in refs.
type chunk struct {
	buf    []byte
	refs   int
	reader *input // that reads into it now, if any: one of refs
	next   *chunk // in the pool
}

// maxIdle is how many unused chunks a pool keeps. The garbage collector gets the
// rest, which only bursts produce.
const maxIdle = 64

// pool hands out chunks. The one returned last goes first: it is in the cache.
type pool struct {
	size int
	free *chunk
	idle int // chunks in free
	live int // chunks in use
}

// get gives a chunk with one reference.
func (p *pool) get() *chunk {
	p.live++
	c := p.free
	if c == nil {
		return &chunk{buf: make([]byte, p.size), refs: 1}
	}
	p.free, c.next = c.next, nil
	p.idle--
	c.refs = 1
	return c
}

// put drops one reference. A reader that has nothing unread in the chunk gives
// it up too when it is the last, so that idle links hold no memory.
func (p *pool) put(c *chunk) {
	c.refs--
	if c.refs == 1 && c.reader != nil && c.reader.idle() {
		c.reader.c = nil
		c.reader = nil
		c.refs = 0
	}
	if c.refs > 0 {
		return
	}
	if c.refs < 0 {
		panic("agent: chunk released twice")
	}
	p.live--
	if p.idle < maxIdle {
		c.next, p.free = p.free, c
		p.idle++
	}
}
