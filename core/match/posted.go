package match

// Posted is the queue of the receives that wait for a message. The zero Posted
// is empty.
type Posted[V any] struct {
	queue[V]
	count [classes]int // entries of each class
}

// Add lets e wait for a message that pattern admits.
func (p *Posted[V]) Add(e *Entry[V], pattern Key) {
	e.key, e.class = pattern, pattern.class()
	p.push(e)
	p.count[e.class]++
	switch {
	case p.indexed:
		p.table.push(e, e.class)
	case p.len > few:
		p.indexed = true
		for o := p.head; o != nil; o = o.order.next {
			p.table.push(o, o.class)
		}
	}
}

// Match removes the oldest receive whose pattern admits the message.
func (p *Posted[V]) Match(msg Key) (v V, ok bool) {
	var e *Entry[V]
	if p.indexed {
		e = p.lookup(msg)
	} else {
		e = p.walk(&msg)
	}
	if e == nil {
		return v, false
	}
	v = e.Value
	p.Remove(e)
	return v, true
}

func (p *Posted[V]) walk(msg *Key) *Entry[V] {
	for e := p.head; e != nil; e = e.order.next {
		p.steps++
		if e.key.admits(e.class, msg) {
			return e
		}
	}
	return nil
}

func (p *Posted[V]) lookup(msg Key) (oldest *Entry[V]) {
	for c := class(0); c < classes; c++ {
		if p.count[c] == 0 {
			continue
		}
		if e := p.table.first(msg, c); e != nil && (oldest == nil || e.seq < oldest.seq) {
			oldest = e
		}
	}
	return oldest
}

// Remove takes e out of the queue.
func (p *Posted[V]) Remove(e *Entry[V]) {
	if p.indexed {
		p.table.remove(e, e.class)
	}
	p.count[e.class]--
	p.unlink(e)
}
