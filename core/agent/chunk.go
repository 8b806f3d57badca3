package agent

// chunk is a piece of memory that a link is read into, or that short runs of packets are
// copied to. refs counts the queues and inputs that refer to a part of it.
type chunk struct {
	buf    []byte
	refs   int
	reader *input // the input that reads into it now, if any; counted in refs
	next   *chunk // next free chunk in the pool
}

// maxIdle is the number of unused chunks that a pool keeps. After a burst there are more;
// those are left to the garbage collector.
const maxIdle = 64

// pool hands out chunks. It reuses the chunk that was returned last, which is most likely
// still in the cache.
type pool struct {
	size int
	free *chunk
	idle int // chunks in free
	live int // chunks in use
}

// get returns a chunk with one reference.
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

// put drops one reference. If the last reference is that of an input with nothing unread in
// the chunk, the input gives the chunk up too, so that idle links hold no memory.
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
