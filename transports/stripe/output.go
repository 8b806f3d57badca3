package stripe

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/openimpi/impi/transports"
)

// outBlock is memory of one connection for a block to send.
type outBlock struct {
	queue *outQueue
	bytes []byte // allocated when it is used first: most links carry little
	n     int    // bytes of the block
}

// outQueue has the blocks that wait for one connection.
type outQueue struct {
	blocks chan *outBlock // as many as there are, so that it never blocks
	done   chan struct{}  // closed once the connection's own stream has ended
}

// output is what has been written and not sent.
type output struct {
	queues []*outQueue
	free   chan *outBlock // those of connections that can send another one
	number uint64         // of the next block
	ended  bool

	mu       sync.Mutex
	late     chan struct{} // closed at the deadline
	deadline *time.Timer
}

func (o *output) init(conns int) {
	o.free = make(chan *outBlock, conns*inHand)
	o.late = make(chan struct{})
	for range conns {
		q := &outQueue{blocks: make(chan *outBlock, inHand+1), done: make(chan struct{})}
		o.queues = append(o.queues, q)
	}
	for range inHand { // in turns, so that the first blocks go over different connections
		for _, q := range o.queues {
			o.free <- &outBlock{queue: q}
		}
	}
}

// release forgets memory for blocks, since a closed connection may be kept for long.
func (o *output) release() {
	for {
		select {
		case <-o.free:
		default:
			return
		}
	}
}

// setDeadline bounds how long the methods of Conn wait.
func (o *output) setDeadline(t time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.deadline != nil {
		o.deadline.Stop()
		o.deadline = nil
	}
	select {
	case <-o.late:
		o.late = make(chan struct{})
	default:
	}
	if t.IsZero() {
		return
	}
	late := o.late
	o.deadline = time.AfterFunc(time.Until(t), func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.late == late {
			select {
			case <-late:
			default:
				close(late)
			}
		}
	})
}

func (o *output) tooLate() chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.late
}

// Write divides p into blocks, and returns when all of them are on their way to the kernel.
func (c *Conn) Write(p []byte) (n int, err error) {
	o := &c.out
	if o.ended {
		return 0, fmt.Errorf("written after the end: %w", os.ErrClosed)
	}
	for n < len(p) {
		select { // also if there is room
		case <-c.broken:
			return n, c.failure()
		case <-o.tooLate():
			return n, os.ErrDeadlineExceeded
		default:
		}
		var b *outBlock
		select {
		case b = <-o.free:
		case <-c.broken:
			return n, c.failure()
		case <-o.tooLate():
			return n, os.ErrDeadlineExceeded
		}
		if b.bytes == nil {
			b.bytes = make([]byte, headSize+blockSize)
		}
		b.n = copy(b.bytes[headSize:], p[n:])
		n += b.n
		b.head(o.number, b.n)
		o.number++
		b.queue.blocks <- b
	}
	return n, nil
}

func (b *outBlock) head(number uint64, n int) {
	binary.BigEndian.PutUint32(b.bytes, uint32(n))
	binary.BigEndian.PutUint64(b.bytes[4:], number)
}

// CloseWrite ends the stream, and waits until the kernel has all of it.
func (c *Conn) CloseWrite() error {
	o := &c.out
	if !o.ended {
		o.ended = true
		for _, q := range o.queues {
			b := &outBlock{queue: q, bytes: make([]byte, headSize)}
			b.head(o.number, 0)
			q.blocks <- b
		}
	}
	for _, q := range o.queues {
		select {
		case <-q.done:
		case <-c.broken:
			return c.failure()
		case <-o.tooLate():
			return os.ErrDeadlineExceeded
		}
	}
	return nil
}

// send sends the blocks of a queue until the stream ends.
func (c *Conn) send(x transports.Conn, q *outQueue) {
	for {
		var b *outBlock
		select {
		case b = <-q.blocks:
		case <-c.broken:
			return
		}
		if _, err := x.Write(b.bytes[:headSize+b.n]); err != nil {
			c.fail(err)
			return
		}
		if b.n == 0 {
			break
		}
		c.out.free <- b
	}
	if err := x.CloseWrite(); err != nil {
		c.fail(err)
		return
	}
	close(q.done)
}
