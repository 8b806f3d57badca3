package proc

import (
	"github.com/openimpi/impi/core/message"
)

// Unlimited is the size of a buffer that any number of messages fit in
// (MPI_BUFFER_AUTOMATIC).
const Unlimited = message.Unlimited

// SendBuffer is memory that the buffered sends of some communicators take from,
// instead of that of BufferAttach, while there is some attached.
type SendBuffer struct {
	Process *Process
	room    *message.Room
}

func NewSendBuffer() (*SendBuffer, error) {
	p, err := Current()
	if err != nil {
		return nil, Failed("NewSendBuffer", err)
	}
	return p.SendBuffer(), nil
}

func (p *Process) SendBuffer() *SendBuffer { return &SendBuffer{Process: p, room: &message.Room{}} }

func (c *Comm) SendBuffer() (*SendBuffer, error) {
	b, err := c.ownBuffer()
	return b, c.Failed("Comm.SendBuffer", err)
}

func (c *Comm) ownBuffer() (*SendBuffer, error) {
	if err := c.Usable(); err != nil {
		return nil, err
	}
	c.p.Lock()
	defer c.p.Unlock()
	if c.buffer == nil {
		c.buffer = c.p.SendBuffer()
		c.p.Eng.UseRoom(c.Context(), c.buffer.room)
	}
	return c.buffer, nil
}

func (b *SendBuffer) Serve(c *Comm) error {
	own, err := c.ownBuffer()
	if err == nil {
		c.p.Lock()
		own.room.Next = b.room
		c.p.Unlock()
	}
	return c.Failed("SendBuffer.Serve", err)
}

// DropBuffer ends what SendBuffer gave. Messages that are in it leave nevertheless.
func (c *Comm) DropBuffer() {
	c.p.Lock()
	defer c.p.Unlock()
	if c.buffer != nil {
		c.p.Eng.UseRoom(c.Context(), nil)
	}
}

func (b *SendBuffer) Attach(size int) error {
	return b.Process.Failed("SendBuffer.Attach", b.attach(size))
}

func (b *SendBuffer) Detach() (size int, err error) {
	size, err = b.detach()
	return size, b.Process.Failed("SendBuffer.Detach", err)
}

func (b *SendBuffer) Flush() error {
	return b.Process.Failed("SendBuffer.Flush", b.flush("SendBuffer.Flush"))
}

func (b *SendBuffer) Iflush() Request { return b.iflush("SendBuffer.Iflush") }

func (b *SendBuffer) attach(size int) error {
	b.Process.Lock()
	defer b.Process.Unlock()
	return b.room.Attach(size)
}

func (b *SendBuffer) detach() (size int, err error) {
	p := b.Process
	p.Lock()
	defer p.Unlock()
	for p.Failure == nil {
		size, done := b.room.Detach()
		if done {
			return size, nil
		}
		p.Turn()
	}
	return 0, p.Failure
}

func (b *SendBuffer) flush(fn string) error {
	q := b.iflush(fn)
	_, err := q.Complete()
	return err
}

func (b *SendBuffer) iflush(fn string) Request {
	return b.Process.Begun(nil, fn, &flush{p: b.Process, room: b.room})
}

// flush is complete once no buffered send is on its way.
type flush struct {
	Steady
	p    *Process
	room *message.Room
}

func (f *flush) Done() bool { return f.room.Used() == 0 }

func (f *flush) Status() (Status, error) { return EmptyStatus, nil }

func (f *flush) Finish() (Status, error) {
	f.Gen++
	if !f.Done() {
		return Status{}, f.p.Failure
	}
	return EmptyStatus, nil
}

// buffer is what BufferAttach and its like are about.
func (p *Process) buffer() *SendBuffer { return &SendBuffer{Process: p, room: p.Eng.Room()} }

// BsendOverhead is what each Bsend takes of the attached memory besides its
// data, in bytes (MPI_BSEND_OVERHEAD).
const BsendOverhead = 512

func BufferAttach(size int) error {
	p, err := Current()
	if err != nil {
		return Failed("BufferAttach", err)
	}
	return p.Failed("BufferAttach", p.BufferAttach(size))
}

func BufferDetach() (size int, err error) {
	p, err := Current()
	if err != nil {
		return 0, Failed("BufferDetach", err)
	}
	size, err = p.BufferDetach()
	return size, p.Failed("BufferDetach", err)
}

func (p *Process) BufferAttach(size int) error { return p.buffer().attach(size) }

func (p *Process) BufferDetach() (size int, err error) { return p.buffer().detach() }

func BufferFlush() error {
	p, err := Current()
	if err != nil {
		return Failed("BufferFlush", err)
	}
	return p.Failed("BufferFlush", p.BufferFlush())
}

func BufferIflush() (Request, error) {
	p, err := Current()
	if err != nil {
		return Request{}, Failed("BufferIflush", err)
	}
	return p.BufferIflush(), nil
}

func (p *Process) BufferFlush() error { return p.buffer().flush("BufferFlush") }

func (p *Process) BufferIflush() Request { return p.buffer().iflush("BufferIflush") }
