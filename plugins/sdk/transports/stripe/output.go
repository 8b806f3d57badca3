package stripe

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

type outBlock struct {
	queue *outQueue
	bytes []byte // allocated when it is used first: most links carry little
	n     int    // bytes of the block
}

type outQueue struct {
	conn   transports.Conn
	blocks chan *outBlock // with room for all blocks that exist, and one that ends the stream
	done   chan struct{}  // closed once the connection's own stream has ended
}

type output struct {
	free    chan *outBlock // blocks of connections that can send another one
	closing chan struct{}  // closed by Close

	write  sync.Mutex // held during Write and CloseWrite; guards what follows
	number uint64     // of the next block
	cut    bool       // a Write took only a part

	mu       sync.Mutex // guards what follows; held for short, also while a Write waits
	queues   []*outQueue
	started  bool          // goroutines send what is in the queues
	ended    bool          // each queue has the end of the stream, or had it
	total    uint64        // blocks, once ended is set
	late     chan struct{} // closed at the deadline
	deadline *time.Timer
}

func (o *output) init() {
	o.free = make(chan *outBlock, MaxConnections*inHand)
	o.closing, o.late = make(chan struct{}), make(chan struct{})
}

func (c *Conn) beginSending(x transports.Conn) {
	o := &c.out
	q := &outQueue{conn: x, blocks: make(chan *outBlock, inHand+1), done: make(chan struct{})}
	o.mu.Lock()
	o.queues = append(o.queues, q)
	if o.ended {
		q.putEnd(o.total)
	}
	if o.started {
		go c.send(q)
	}
	o.mu.Unlock()
	for range inHand {
		o.free <- &outBlock{queue: q}
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
	if c.startSending() {
		return 0, fmt.Errorf("written after the end: %w", os.ErrClosed)
	}
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
		c.note(b.n) // b belongs to the connection from the next line on
		b.queue.blocks <- b
	}
	return n, nil
}

// place waits for memory for a block.
func (c *Conn) place() (*outBlock, error) {
	select { // check these first, even if there is memory
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
	for _, q := range c.putEnd() {
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

// closeWrite is CloseWrite for Close, which bounds the time. A Write that was cut short is an
// error.
func (c *Conn) closeWrite() error {
	o := &c.out
	o.write.Lock()
	defer o.write.Unlock()
	if o.cut {
		return fmt.Errorf("%w: it was closed before all was written", link.ErrBroken)
	}
	for _, q := range c.putEnd() {
		select {
		case <-q.done:
		case <-c.broken:
			return c.failure()
		}
	}
	return nil
}

// putEnd has each connection send the end of the stream, once, and returns their queues. The caller
// holds write.
func (c *Conn) putEnd() []*outQueue {
	c.startSending()
	o := &c.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.ended {
		o.ended, o.total = true, o.number
		for _, q := range o.queues {
			q.putEnd(o.total)
		}
	}
	return slices.Clone(o.queues)
}

// putEnd adds the end of a stream of so many blocks, for which there is always room.
func (q *outQueue) putEnd(total uint64) {
	b := &outBlock{queue: q, bytes: make([]byte, headSize)}
	b.head(total, 0)
	q.blocks <- b
}

// startSending starts the goroutines that send, once, and reports whether the stream has ended.
func (c *Conn) startSending() (ended bool) {
	o := &c.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.started {
		o.started = true
		for _, q := range o.queues {
			go c.send(q)
		}
	}
	return o.ended
}

func (c *Conn) send(q *outQueue) {
	x := q.conn
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
