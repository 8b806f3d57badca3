package match

// Posted is the queue of the receives that wait for a message. Its zero value
// is an empty queue, ready to use.
type Posted[V any] struct {
	queue[V]
	count [classes]int // entries of each class
	own   int          // entries that are the library's own
}

// Add adds receive e, which waits for a message that matches pattern.
func (p *Posted[V]) Add(e *Entry[V], pattern Key) {
	e.key, e.class = pattern, pattern.class()
	p.push(e)
	p.count[e.class]++
	if e.Own {
		p.own++
	}
	if p.indexed {
		p.table.push(e, e.class)
	}
}

// Match removes and returns the oldest receive whose pattern admits the message: of several
// receives that match it, MPI requires the one that was posted first (MPI-4.1, 3.5).
func (p *Posted[V]) Match(msg Key) (v V, ok bool) {
	e := p.find(msg)
	if e == nil {
		return v, false
	}
	v = e.Value
	p.Remove(e)
	return v, true
}

// find searches linearly as long as messages match one of the oldest receives, which they
// do if both come in the same order. It makes the table when one does not.
func (p *Posted[V]) find(msg Key) *Entry[V] {
	if p.indexed {
		return p.lookup(msg)
	}
	e := p.head
	for range few {
		if e == nil {
			return nil
		}
		p.steps++
		if e.key.admits(e.class, &msg) {
			return e
		}
		e = e.order.next
	}
	if e == nil {
		return nil
	}
	p.indexed = true
	for o := p.head; o != nil; o = o.order.next {
		p.table.push(o, o.class)
	}
	return p.lookup(msg)
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

// Remove removes e, which must be in this queue, as when its receive has been matched or cancelled.
func (p *Posted[V]) Remove(e *Entry[V]) {
	if p.indexed {
		p.table.remove(e, e.class)
	}
	p.count[e.class]--
	if e.Own {
		p.own--
	}
	p.unlink(e)
}

// Own returns the number of receives of the library's own, in contexts in which the program
// receives nothing.
func (p *Posted[V]) Own() int { return p.own }
