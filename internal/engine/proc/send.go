package proc

import (
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/calls"
)

// SendElements is a blocking send in any mode (MPI-4.1, 3.4). If measured is set it is MPI_Send,
// whose time is measured if measuring is on: for a short message once it has left.
func (c *Comm) SendElements(mode message.Mode, b []byte, k datatype.Kind, dst, tag int, measured bool) error {
	begun := int64(0)
	if measured {
		begun = calls.BeginUntimed()
	}
	peer, none, err := c.PartnerOf(dst, tag)
	if none || err != nil {
		if begun != 0 {
			endMeasuredSend(c, begun, false, len(b), dst, tag)
		}
		return err
	}
	p := c.p
	p.Lock()
	defer p.Unlock()
	if mode == message.Standard && !p.Data.foreign(peer, k) && p.sendEager(peer, c.Envelope(tag), b, int64(len(b)/k.Size()), uint64(k)) {
		if begun == 0 {
			return nil
		}
		if run := p.Account.run; run == nil || !calls.IsUntimed(begun) || !run.Count(calls.Sends, dst, tag, len(b), ContextOf(c)) {
			endMeasuredSend(c, begun, run != nil, len(b), dst, tag)
		}
		return nil
	}
	begun = calls.SinceNow(begun)
	out := p.Data.payload(peer, b, k)
	err = p.sendAndWait(peer, c.Envelope(tag), mode, &out)
	if begun != 0 {
		endMeasuredSend(c, begun, p.Account.run != nil, len(b), dst, tag)
	}
	return err
}

// endMeasuredSend ends the measurement of a send that began at a time of BeginUntimed and was not
// counted. The process is locked if run is set.
func endMeasuredSend(c *Comm, begun int64, run bool, size, dst, tag int) {
	calls.EndSend(run, begun, dst, tag, int64(size), ContextOf(c))
}

func (c *Comm) IsendElements(fn RequestFunc, mode message.Mode, b []byte, k datatype.Kind, dst, tag int) (Request, error) {
	peer, none, err := c.PartnerOf(dst, tag)
	switch {
	case err != nil:
		return Request{}, err
	case none:
		return NoPartner(c, fn), nil
	}
	p := c.p
	p.Lock()
	defer p.Unlock()
	if mode == message.Standard && !p.Data.foreign(peer, k) && p.Eng.SendFastBox(peer, c.Envelope(tag), b, uint64(k)) {
		return NewSentRequest(c, fn), nil
	}
	out := p.Data.payload(peer, b, k)
	return c.Active(fn, p.Isend(peer, c.Envelope(tag), mode, &out, false), out.Items), nil
}

// Active returns the request for a message under way, made by fn. items is its stream if the data
// are converted, otherwise nil.
func (c *Comm) Active(fn RequestFunc, r *message.Request, items *Stream) Request {
	if items != nil {
		r.User = items
	}
	return Request{c: c, r: r, standing: standing{r.Generation(), Active, fn}}
}

// Envelope returns what receivers match messages by that this proc sends in c (MPI-4.1, 3.2.3).
func (c *Comm) Envelope(tag int) message.Envelope {
	return message.Envelope{Context: c.Context(), Rank: wire.CommRank(c.Rank()), Tag: wire.Tag(tag)}
}

// Send sends a message and blocks until out can be used again.
func (p *Process) Send(peer message.Peer, env message.Envelope, mode message.Mode, out *Payload) error {
	if mode == message.Standard && out.Items == nil && p.sendEager(peer, env, out.Mem, out.Count, out.Dtype) {
		return nil
	}
	return p.sendAndWait(peer, env, mode, out)
}

// sendAndWait is Send for messages that cannot leave at once.
func (p *Process) sendAndWait(peer message.Peer, env message.Envelope, mode message.Mode, out *Payload) error {
	r := p.Isend(peer, env, mode, out, true)
	p.Wait(r)
	return p.End(r, out.Items)
}

// sendEager sends a short message if it can leave at once, and reports whether it did.
func (p *Process) sendEager(peer message.Peer, env message.Envelope, b []byte, count int64, dtype uint64) bool {
	l, ok := p.Eng.SendEager(peer, env, b, count, dtype)
	if !ok {
		return false
	}
	if l != message.NoLink {
		if q := p.Endpoints.List[l]; q != nil {
			q.burst = false
			q.Flush()
		}
	}
	if p.Node.news.Load() && !p.Driving { // a program that only sends may never wait
		p.Test()
	}
	return true
}

// Isend starts a send and writes what can leave.
func (p *Process) Isend(peer message.Peer, env message.Envelope, mode message.Mode, out *Payload, blocking bool) *message.Request {
	var r *message.Request
	size := len(out.Mem)
	if s := out.Items; s == nil {
		r = p.Eng.Send(peer, env, mode, out.Mem, out.Count, out.Dtype)
	} else {
		n := s.Buf.Size(s.Rep)
		r = p.Eng.SendFrom(peer, env, mode, s, n, out.Count, out.Dtype)
		size = int(min(n, holdBack+1))
	}
	p.Endpoints.Send(peer, size, blocking)
	p.own(r)
	return r
}

// End releases r and the stream of its data, which may be nil, and returns the error of the
// message.
func (p *Process) End(r *message.Request, items *Stream) error {
	err := r.Err()
	if r.Done() {
		err = items.verdict(err)
		p.Data.Retire(items)
	} else if err = p.Failure; err == nil {
		err = p.Survival.doubt(r)
		p.Eng.Cancel(r)
		p.Data.Retire(items)
	}
	p.Eng.Release(r)
	return err
}

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

func (b *SendBuffer) ServeComm(c *Comm) error {
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
	return b.Process.NewOperationRequest(nil, b.name+"Iflush", &flush{p: b.Process, room: b.room})
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
	Uncancellable
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

// AttachedBuffer returns the buffer of BufferAttach, for buffered sends in communicators without a
// buffer of their own (MPI-4.1, 3.6).
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
