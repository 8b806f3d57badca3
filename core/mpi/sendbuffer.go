package mpi

import "github.com/openimpi/impi/core/message"

// Unlimited is the size of a buffer that any number of messages fit in
// (MPI_BUFFER_AUTOMATIC).
const Unlimited = message.Unlimited

// SendBuffer is memory that the buffered sends of some communicators take from,
// instead of that of BufferAttach, while there is some attached.
type SendBuffer struct {
	p    *process
	room *message.Room
}

// NewSendBuffer makes one for the communicators that it is to Serve. Nothing is
// attached to it.
func NewSendBuffer() (*SendBuffer, error) {
	p, err := current()
	if err != nil {
		return nil, failed("NewSendBuffer", err)
	}
	return p.sendBuffer(), nil
}

func (p *process) sendBuffer() *SendBuffer { return &SendBuffer{p: p, room: &message.Room{}} }

// SendBuffer gives what the buffered sends of c alone take from
// (MPI_Comm_attach_buffer). It ends with c.
func (c *Comm) SendBuffer() (*SendBuffer, error) {
	b, err := c.ownBuffer()
	return b, c.failed("Comm.SendBuffer", err)
}

func (c *Comm) ownBuffer() (*SendBuffer, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	c.p.lock()
	defer c.p.unlock()
	if c.buffer == nil {
		c.buffer = c.p.sendBuffer()
		c.p.eng.UseRoom(c.Context(), c.buffer.room)
	}
	return c.buffer, nil
}

// Serve has the buffered sends of c take from b while c has nothing attached of its own
// (MPI_Session_attach_buffer).
func (b *SendBuffer) Serve(c *Comm) error {
	own, err := c.ownBuffer()
	if err == nil {
		c.p.lock()
		own.room.Next = b.room
		c.p.unlock()
	}
	return c.failed("SendBuffer.Serve", err)
}

// dropBuffer ends what SendBuffer gave. Messages that are in it leave nevertheless.
func (c *Comm) dropBuffer() {
	c.p.lock()
	defer c.p.unlock()
	if c.buffer != nil {
		c.p.eng.UseRoom(c.Context(), nil)
	}
}

// Attach gives size bytes of memory to b, as BufferAttach.
func (b *SendBuffer) Attach(size int) error {
	return b.p.failed("SendBuffer.Attach", b.attach(size))
}

// Detach is BufferDetach.
func (b *SendBuffer) Detach() (size int, err error) {
	size, err = b.detach()
	return size, b.p.failed("SendBuffer.Detach", err)
}

// Flush is BufferFlush.
func (b *SendBuffer) Flush() error {
	return b.p.failed("SendBuffer.Flush", b.flush("SendBuffer.Flush"))
}

// Iflush begins a Flush.
func (b *SendBuffer) Iflush() Request { return b.iflush("SendBuffer.Iflush") }

func (b *SendBuffer) attach(size int) error {
	b.p.lock()
	defer b.p.unlock()
	return b.room.Attach(size)
}

func (b *SendBuffer) detach() (size int, err error) {
	p := b.p
	p.lock()
	defer p.unlock()
	for p.failure == nil {
		size, done := b.room.Detach()
		if done {
			return size, nil
		}
		p.turn()
	}
	return 0, p.failure
}

func (b *SendBuffer) flush(fn string) error {
	q := b.iflush(fn)
	_, err := q.complete()
	return err
}

func (b *SendBuffer) iflush(fn string) Request {
	return b.p.begun(nil, fn, &flush{p: b.p, room: b.room})
}

// flush is complete once no buffered send is on its way.
type flush struct {
	steady
	p    *process
	room *message.Room
}

func (f *flush) done() bool { return f.room.Used() == 0 }

func (f *flush) status() (Status, error) { return emptyStatus, nil }

func (f *flush) finish() (Status, error) {
	f.gen++
	if !f.done() {
		return Status{}, f.p.failure
	}
	return emptyStatus, nil
}
