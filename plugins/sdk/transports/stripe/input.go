package stripe

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/openimpi/impi/plugins/sdk/transports"
)

type inBlock struct {
	home  chan *inBlock
	bytes []byte // allocated when it is used first
	n     int    // bytes of the block
	read  int    // bytes of the block that were read
}

type input struct {
	mu       sync.Mutex
	news     sync.Cond
	started  bool                // connections are read
	waiting  []transports.Conn   // connections that are read once started is set
	blocks   map[uint64]*inBlock // blocks that were received, by their numbers
	next     uint64              // number of the block that is read next
	open     int                 // connections that bring more blocks, or may
	end      uint64              // total number of blocks, once ended is set
	ended    bool
	late     bool // the deadline has passed
	deadline *time.Timer
}

func (in *input) init() {
	in.news.L = &in.mu
	in.blocks = make(map[uint64]*inBlock)
}

// expect says that blocks may come over one more connection.
func (in *input) expect() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.open++
}

// expectNot undoes one call of expect.
func (in *input) expectNot() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.oneLess()
}

// oneLess notes that a connection brings no more blocks. The caller holds mu.
func (in *input) oneLess() error {
	if in.open--; in.open == 0 && in.ended && uint64(len(in.blocks)) != in.end-in.next {
		return fmt.Errorf("%w: the stream has ended, but of its %d blocks some did not come", ErrProtocol, in.end)
	}
	in.news.Broadcast()
	return nil
}

func (in *input) wake() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.news.Broadcast()
}

func (in *input) release() {
	in.mu.Lock()
	defer in.mu.Unlock()
	clear(in.blocks)
}

func (in *input) setDeadline(t time.Time) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.deadline != nil {
		in.deadline.Stop()
		in.deadline = nil
	}
	in.late = false
	if t.IsZero() {
		return
	}
	var mine *time.Timer
	mine = time.AfterFunc(time.Until(t), func() {
		in.mu.Lock()
		defer in.mu.Unlock()
		if in.deadline == mine {
			in.late = true
			in.news.Broadcast()
		}
	})
	in.deadline = mine
}

// Read copies the next bytes of the stream. It returns io.EOF after the last one, and an error if
// the connection has failed, even if some bytes came before that.
func (c *Conn) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	in := &c.in
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.started {
		in.started = true
		for _, x := range in.waiting {
			go c.receive(x)
		}
		in.waiting = nil
	}
	for {
		b := in.blocks[in.next]
		switch {
		case b != nil:
			n = copy(p, b.bytes[b.read:b.n])
			if b.read += n; b.read == b.n {
				delete(in.blocks, in.next)
				in.next++
				b.home <- b // home has room for all blocks that it has lent
			}
			return n, nil
		case in.open == 0 && in.next == in.end: // all connections say so
			return 0, io.EOF
		case c.failure() != nil:
			return 0, c.failure()
		case in.late:
			return 0, os.ErrDeadlineExceeded
		}
		in.news.Wait()
	}
}

// beginReceiving reads from one more connection, once somebody reads.
func (c *Conn) beginReceiving(x transports.Conn) {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	if c.in.started {
		go c.receive(x)
		return
	}
	c.in.waiting = append(c.in.waiting, x)
}

func (c *Conn) receive(x transports.Conn) {
	home := make(chan *inBlock, inHand)
	for range inHand {
		home <- &inBlock{home: home}
	}
	var head [headSize]byte
	for first, last := true, uint64(0); ; first = false {
		if _, err := io.ReadFull(x, head[:]); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF // a stream that ends in order has announced its end
			}
			c.fail(err)
			return
		}
		n, number := binary.BigEndian.Uint32(head[:]), binary.BigEndian.Uint64(head[4:])
		switch {
		case n > blockSize:
			c.fail(fmt.Errorf("%w: a block of %d bytes", ErrProtocol, n))
			return
		case n > 0 && !first && number <= last:
			c.fail(fmt.Errorf("%w: block %d comes after block %d", ErrProtocol, number, last))
			return
		case n == 0:
			if err := c.in.endsAt(number, first, last); err != nil {
				c.fail(err)
			}
			return
		}
		last = number
		var b *inBlock
		select {
		case b = <-home:
		case <-c.broken:
			return
		}
		if b.bytes == nil {
			b.bytes = make([]byte, blockSize)
		}
		b.n, b.read = int(n), 0
		if _, err := io.ReadFull(x, b.bytes[:n]); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			c.fail(err)
			return
		}
		if err := c.in.arrived(number, b); err != nil {
			c.fail(err)
			return
		}
		c.note(int(n))
	}
}

func (in *input) arrived(number uint64, b *inBlock) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if number < in.next || in.blocks[number] != nil || in.ended && number >= in.end {
		return fmt.Errorf("%w: block %d comes twice, or after the end", ErrProtocol, number)
	}
	in.blocks[number] = b
	if number == in.next {
		in.news.Signal()
	}
	return nil
}

// endsAt notes that a connection has brought its last block, and how many there are in all.
func (in *input) endsAt(end uint64, none bool, last uint64) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	beyond := in.next > end || !none && last >= end
	for number := range in.blocks {
		beyond = beyond || number >= end
	}
	if beyond || in.ended && in.end != end {
		return fmt.Errorf("%w: the stream ends at block %d, and also at another one", ErrProtocol, end)
	}
	in.end, in.ended = end, true
	return in.oneLess()
}
