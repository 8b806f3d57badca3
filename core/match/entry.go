package match

import "iter"

// Entry is an element of a queue. It is embedded in the message or receive that waits there, to
// which Value points back. The zero Entry is in no queue.
type Entry[V any] struct {
	Value V

	key    Key
	class  class // class of a receive's pattern
	Own    bool  // a receive of the library's own: see Posted.Own
	queued bool
	seq    uint64
	order  hook[V]          // links among all entries
	equal  [classes]hook[V] // links among the entries of equal key, for each class
}

// Queued reports whether the entry is in a queue: then it may be removed, but not added.
func (e *Entry[V]) Queued() bool { return e.queued }

// Key returns the key with which the entry was added.
func (e *Entry[V]) Key() Key { return e.key }

type hook[V any] struct{ prev, next *Entry[V] }

// few is up to how many entries a queue is searched without the table.
const few = 8

// queue has all entries in the order of their arrival.
type queue[V any] struct {
	head, tail *Entry[V]
	len        int
	seq        uint64
	indexed    bool // entries are also in the table, until the queue is empty
	table      table[V]
	steps      uint64
}

// Len returns the number of entries.
func (q *queue[V]) Len() int { return q.len }

// All returns the entries' values, oldest first. The value just returned may be removed.
func (q *queue[V]) All() iter.Seq[V] {
	return func(yield func(V) bool) {
		for e := q.head; e != nil; {
			next := e.order.next
			if !yield(e.Value) {
				return
			}
			e = next
		}
	}
}

// Backward is All in the other order: youngest first.
func (q *queue[V]) Backward() iter.Seq[V] {
	return func(yield func(V) bool) {
		for e := q.tail; e != nil; {
			prev := e.order.prev
			if !yield(e.Value) {
				return
			}
			e = prev
		}
	}
}

func (q *queue[V]) push(e *Entry[V]) {
	if e.queued {
		panic("match: entry is in a queue already")
	}
	q.seq++
	e.seq, e.queued = q.seq, true
	e.order = hook[V]{prev: q.tail}
	if q.tail == nil {
		q.head = e
	} else {
		q.tail.order.next = e
	}
	q.tail = e
	q.len++
}

func (q *queue[V]) unlink(e *Entry[V]) {
	if !e.queued {
		panic("match: entry is not in the queue")
	}
	prev, next := e.order.prev, e.order.next
	if prev == nil {
		q.head = next
	} else {
		prev.order.next = next
	}
	if next == nil {
		q.tail = prev
	} else {
		next.order.prev = prev
	}
	e.order, e.queued = hook[V]{}, false
	if q.len--; q.len == 0 {
		q.indexed = false
	}
}
