package cluster

import "sync"

// queue holds what is to be sent by a stream, in order. Adding never blocks: only a few small
// messages for each host, failure and signal go through it. Output and input have streams of their
// own.
type queue[T any] struct {
	mu     sync.Mutex
	list   []T
	more   chan struct{} // holds an element if list has any, or the queue is closed
	closed bool
}

func newQueue[T any]() *queue[T] { return &queue[T]{more: make(chan struct{}, 1)} }

func (q *queue[T]) add(x T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.list = append(q.list, x)
		q.wake()
	}
}

func (q *queue[T]) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.wake()
}

func (q *queue[T]) wake() {
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// drain sends what is in the queue and what is added later, until the queue ends, send fails or
// done is closed.
func (q *queue[T]) drain(done <-chan struct{}, send func(T) error) error {
	for {
		q.mu.Lock()
		list, closed := q.list, q.closed
		q.list = nil
		q.mu.Unlock()
		for _, x := range list {
			if err := send(x); err != nil {
				return err
			}
		}
		if closed {
			return nil
		}
		select {
		case <-q.more:
		case <-done:
			return nil
		}
	}
}
