package message

// fifo is a queue in a ring that grows and never shrinks.
type fifo[T any] struct {
	ring []T // length is a power of two
	head int
	len  int
}

func (f *fifo[T]) push(v T) {
	if f.len == len(f.ring) {
		f.grow()
	}
	f.ring[(f.head+f.len)&(len(f.ring)-1)] = v
	f.len++
}

func (f *fifo[T]) grow() {
	ring := make([]T, max(8, 2*len(f.ring)))
	for i := range f.len {
		ring[i] = *f.at(i)
	}
	f.ring, f.head = ring, 0
}

func (f *fifo[T]) at(i int) *T { return &f.ring[(f.head+i)&(len(f.ring)-1)] }

// pop removes the front; the ring keeps no reference to it.
func (f *fifo[T]) pop() (v T) {
	p := f.at(0)
	v, *p = *p, v
	f.head = (f.head + 1) & (len(f.ring) - 1)
	f.len--
	return v
}

func (f *fifo[T]) clear() {
	clear(f.ring)
	f.head, f.len = 0, 0
}

type requests struct {
	head, tail *Request
}

func (q *requests) push(r *Request) {
	r.prev, r.next = q.tail, nil
	if q.tail == nil {
		q.head = r
	} else {
		q.tail.next = r
	}
	q.tail = r
}

func (q *requests) remove(r *Request) {
	if r.prev == nil {
		q.head = r.next
	} else {
		r.prev.next = r.next
	}
	if r.next == nil {
		q.tail = r.prev
	} else {
		r.next.prev = r.prev
	}
	r.prev, r.next = nil, nil
}
