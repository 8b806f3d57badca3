package match

// Unexpected is the queue of the messages that wait for a receive. Its zero value is an
// empty queue, ready to use.
type Unexpected[V any] struct {
	queue[V]
	asked [classes]bool // classes for which the table has lists, in addition to exact
}

// Add adds message e, which waits for a receive.
func (u *Unexpected[V]) Add(e *Entry[V], msg Key) {
	e.key = msg
	u.push(e)
	switch {
	case u.indexed:
		u.index(e)
	case u.len > few:
		u.indexed = true
		for o := u.head; o != nil; o = o.order.next {
			u.index(o)
		}
	}
}

func (u *Unexpected[V]) index(e *Entry[V]) {
	u.table.push(e, exact)
	for c := exact + 1; c < classes; c++ {
		if u.asked[c] {
			u.table.push(e, c)
		}
	}
}

// Find returns the oldest message that pattern admits and leaves it in the queue. Messages of one
// sender are found in the order in which they were sent (MPI-4.1, 3.5), since their first packets
// arrive in this order.
func (u *Unexpected[V]) Find(pattern Key) (v V, ok bool) {
	if u.len == 0 {
		return v, false
	}
	var e *Entry[V]
	if c := pattern.class(); u.indexed {
		e = u.lookup(pattern, c)
	} else {
		e = u.walk(&pattern, c)
	}
	if e == nil {
		return v, false
	}
	return e.Value, true
}

func (u *Unexpected[V]) walk(pattern *Key, c class) *Entry[V] {
	for e := u.head; e != nil; e = e.order.next {
		u.steps++
		if pattern.admits(c, &e.key) {
			return e
		}
	}
	return nil
}

// lookup finds the message in the table. The lists of a class are made when a pattern of it is
// first looked for, so that each message enters at most one list of each class.
func (u *Unexpected[V]) lookup(pattern Key, c class) *Entry[V] {
	if c != exact && !u.asked[c] {
		u.asked[c] = true
		for e := u.head; e != nil; e = e.order.next {
			u.table.push(e, c)
		}
	}
	return u.table.first(pattern, c)
}

// Remove removes message e from the queue.
func (u *Unexpected[V]) Remove(e *Entry[V]) {
	if u.indexed {
		u.table.remove(e, exact)
		for c := exact + 1; c < classes; c++ {
			if u.asked[c] {
				u.table.remove(e, c)
			}
		}
	}
	u.unlink(e)
}
