package stripe

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// outBlock is memory of one connection for a block to send.
type outBlock struct {
	queue *outQueue
	bytes []byte // allocated when it is used first: most links carry little
	n     int    // bytes of the block
}

// outQueue has the blocks that wait for one connection.
type outQueue struct {
	blocks chan *outBlock // with room for all that there are, and one that ends the stream
	done   chan struct{}  // closed once the connection's own stream has ended
}

// output is what has been written and not sent.
type output struct {
	queues  []*outQueue
	free    chan *outBlock // those of connections that can send another one
	start   sync.Once      // of the goroutines that send
	closing chan struct{}  // closed by Close

	write  sync.Mutex // held during Write and CloseWrite; guards what follows
	number uint64     // of the next block
	cut    bool       // a Write took only a part
	ended  bool

	mu       sync.Mutex    // guards what follows
	late     chan struct{} // closed at the deadline
	deadline *time.Timer
}

func (o *output) init(conns int) {
	o.free = make(chan *outBlock, conns*inHand)
	o.closing, o.late = make(chan struct{}), make(chan struct{})
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
	var mine *time.Timer
	mine = time.AfterFunc(time.Until(t), func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.deadline == mine { // and not one that was set since
			close(o.late)
			o.deadline = nil
		}
	})
	o.deadline = mine
}

func (o *output) tooLate() chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.late
}

// Write divides p into blocks, and returns when all of them wait for their connections.
func (c *Conn) Write(p []byte) (n int, err error) {
	o := &c.out
	o.write.Lock()
	defer o.write.Unlock()
	if o.ended {
		return 0, fmt.Errorf("written after the end: %w", os.ErrClosed)
	}
	o.start.Do(c.startSending)
	for n < len(p) {
		b, err := c.place()
		if err != nil {
			o.cut = true
			return n, err
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

// place waits for memory for a block.
func (c *Conn) place() (*outBlock, error) {
	select { // these count also if there is memory
	case <-c.broken:
		return nil, c.failure()
	case <-c.out.closing:
		return nil, net.ErrClosed
	case <-c.out.tooLate():
		return nil, os.ErrDeadlineExceeded
	default:
	}
	select {
	case b := <-c.out.free:
		return b, nil
	case <-c.broken:
		return nil, c.failure()
	case <-c.out.closing:
		return nil, net.ErrClosed
	case <-c.out.tooLate():
		return nil, os.ErrDeadlineExceeded
	}
}

func (b *outBlock) head(number uint64, n int) {
	binary.BigEndian.PutUint32(b.bytes, uint32(n))
	binary.BigEndian.PutUint64(b.bytes[4:], number)
}

// CloseWrite ends the stream, and waits until the kernel has all of it.
func (c *Conn) CloseWrite() error {
	o := &c.out
	o.write.Lock()
	defer o.write.Unlock()
	c.putEnd()
	for _, q := range o.queues {
		select {
		case <-q.done:
		case <-c.broken:
			return c.failure()
		case <-o.closing:
			return net.ErrClosed // Close waits in its turn
		case <-o.tooLate():
			return os.ErrDeadlineExceeded
		}
	}
	return nil
}

// closeWrite is CloseWrite for Close, which bounds the time. A Write that was cut short is an error.
func (c *Conn) closeWrite() error {
	o := &c.out
	o.write.Lock()
	defer o.write.Unlock()
	if o.cut {
		return fmt.Errorf("%w: it was closed before all was written", link.ErrBroken)
	}
	c.putEnd()
	for _, q := range o.queues {
		select {
		case <-q.done:
		case <-c.broken:
			return c.failure()
		}
	}
	return nil
}

// putEnd has each connection send the end of the stream, once.
func (c *Conn) putEnd() {
	o := &c.out
	if o.ended {
		return
	}
	o.ended = true
	o.start.Do(c.startSending)
	for _, q := range o.queues {
		b := &outBlock{queue: q, bytes: make([]byte, headSize)}
		b.head(o.number, 0)
		q.blocks <- b
	}
}

func (c *Conn) startSending() {
	for i, x := range c.conns {
		go c.send(x, c.out.queues[i])
	}
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
	if err := x.CloseWrite(); err != nil && !errors.Is(err, net.ErrClosed) {
		c.fail(err)
		return
	}
	close(q.done)
}
