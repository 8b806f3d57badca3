package proc

import (
	"github.com/openimpi/impi/core/message"
)

// Unlimited is the size of MPI_BUFFER_AUTOMATIC: any number of messages fit (MPI-4.1, 3.6).
const Unlimited = message.Unlimited

// SendBuffer is the memory attached to a communicator for its buffered sends, which use it instead
// of the buffer of BufferAttach (MPI-4.1, 3.6).
type SendBuffer struct {
	Process *Process
	name    string // put before its methods' names in errors
	room    *message.BufferSpace
}

func NewSendBuffer() (*SendBuffer, error) {
	p, err := Current()
	if err != nil {
		return nil, err
	}
	return p.SendBuffer(), nil
}

// SendBuffer returns a new buffer for buffered sends without memory (MPI-4.1, 3.6).
func (p *Process) SendBuffer() *SendBuffer {
	return &SendBuffer{Process: p, name: "SendBuffer.", room: &message.BufferSpace{}}
}

func (c *Comm) SendBuffer() (*SendBuffer, error) {
	if err := c.Usable(); err != nil {
		return nil, err
	}
	c.p.Lock()
	defer c.p.Unlock()
	if c.buffer == nil {
		c.buffer = c.p.SendBuffer()
		c.p.Eng.UseBufferSpace(c.Context(), c.buffer.room)
	}
	return c.buffer, nil
}

func (b *SendBuffer) Serve(c *Comm) error {
	own, err := c.SendBuffer()
	if err == nil {
		c.p.Lock()
		own.room.Next = b.room
		c.p.Unlock()
	}
	return err
}

// DropBuffer removes the buffer of c, which is freed. Messages in the buffer are still sent.
func (c *Comm) DropBuffer() {
	c.p.Lock()
	defer c.p.Unlock()
	if c.buffer != nil {
		c.p.Eng.UseBufferSpace(c.Context(), nil)
	}
}

func (b *SendBuffer) Attach(size int) error {
	b.Process.Lock()
	defer b.Process.Unlock()
	return b.room.Attach(size)
}

func (b *SendBuffer) Flush() error {
	q := b.Iflush()
	_, err := q.Complete()
	return err
}

func (b *SendBuffer) Iflush() Request {
	return b.Process.Begun(nil, b.name+"Iflush", &flush{p: b.Process, room: b.room})
}

func (b *SendBuffer) Detach() (size int, err error) {
	p := b.Process
	p.Lock()
	defer p.Unlock()
	for p.Failure == nil {
		size, done := b.room.Detach()
		if done {
			return size, nil
		}
		p.AwaitProgress()
	}
	return 0, p.Failure
}

// flush is an operation that is complete once all buffered sends have left.
type flush struct {
	Steady
	p    *Process
	room *message.BufferSpace
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

// BsendOverhead is the number of bytes of attached memory that each Bsend uses in addition to its
// data (MPI_BSEND_OVERHEAD).
const BsendOverhead = 512

// AttachedBuffer returns the buffer of BufferAttach.
func (p *Process) AttachedBuffer() *SendBuffer {
	return &SendBuffer{Process: p, name: "Buffer", room: p.Eng.BufferSpace()}
}

func BufferIflush() (Request, error) {
	p, err := Current()
	if err != nil {
		return Request{}, err
	}
	return p.AttachedBuffer().Iflush(), nil
}
