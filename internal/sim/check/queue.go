package check

type queue[T any] struct {
	ring []T // len is zero or a power of two
	head int
	n    int
}

func (q *queue[T]) at(i int) *T { return &q.ring[(q.head+i)&(len(q.ring)-1)] }

// front returns the oldest element; there must be one.
func (q *queue[T]) front() *T { return q.at(0) }

// back returns the youngest element; there must be one.
func (q *queue[T]) back() *T { return q.at(q.n - 1) }

func (q *queue[T]) push(v T) {
	if q.n == len(q.ring) {
		bigger := make([]T, max(4, 2*q.n))
		for i := range q.n {
			bigger[i] = *q.at(i)
		}
		q.ring, q.head = bigger, 0
	}
	q.n++
	*q.back() = v
}

func (q *queue[T]) pop() T {
	v := *q.front()
	clear(q.ring[q.head : q.head+1])
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.n--
	return v
}
