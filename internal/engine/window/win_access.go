package window

import (
	"fmt"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/rma"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/proc"
)

// Target is the place of an operation: Count items of Type, from Disp units on, in the window of a
// rank. Operations at ProcNull do nothing.
type Target struct {
	Rank  int
	Disp  int64
	Count int
	Type  *proc.Datatype
}

type target struct {
	open      []*access // not complete at the origin, in the order in which they began
	begun     uint64    // number of operations begun that the target does not answer
	acked     uint64    // number of these that are known to be complete at the target
	listed    bool      // the target is in dirty
	unchecked bool      // locked with rma.NoCheck, so the target does not know of the lock
	err       error     // of the first operation that has failed since the last report
}

// access is a request to a target that is under way: an operation or a synchronisation.
type access struct {
	proc.Uncancellable
	w      *Win
	rank   int
	head   []byte              // the encoded header
	typ    []byte              // the encoded datatype, if it is a message of its own
	sends  [3]*message.Request // sends of header, datatype and data
	out    *proc.Stream        // packs the data
	answer *message.Request
	in     *proc.Stream
	want   int64 // bytes of the expected answer; 0 for a code
	code   [1]byte
	queued bool // the access is in the target's open
	held   bool // a Request of the program holds it
	ended  bool
	err    error
}

type parts struct {
	out  *proc.Buffer // the data that is sent
	swap *proc.Buffer // of CompareAndSwap: the value to compare with
	in   *proc.Buffer // the buffer for the answer
	want int64        // bytes of the answer
}

func (w *Win) peer(rank int) message.Peer {
	proc, _ := w.c.Comm.Group().At(rank)
	return message.Peer(proc)
}

func (w *Win) incoming(rank wire.CommRank, tag int32) message.Envelope {
	return message.Envelope{Context: w.c.Context(), Rank: rank, Tag: wire.Tag(tag)}
}

// ask sends the request h to a rank. The process is locked.
func (o *Origin) ask(rank int, h rma.Header, x parts) *access {
	a := o.newAccess(rank)
	o.seq = rma.Next(o.seq)
	h.Seq = o.seq
	peer := o.w.peer(rank)
	h.TypeLen = int64(len(h.Type))
	h.SeparateType = !rma.Fits(h.TypeLen, 0)
	a.want = x.want
	a.expect(peer, &h, x.in)
	var out proc.Payload
	inline := false
	if x.out != nil {
		out = o.w.Process.Data.Exactly(peer, *x.out)
		h.Len = size(&out)
		inline = !h.SeparateType && rma.Fits(h.TypeLen, h.Len)
		if x.swap != nil {
			h.Len *= 2
		}
	}
	a.head = h.Append(a.head[:0], inline)
	if inline {
		a.inline(peer, &h, out, x.swap)
	}
	a.sends[0] = a.send(peer, rma.HeaderTag, proc.Payload{Mem: a.head, Count: int64(len(a.head)), Dtype: uint64(datatype.Byte)})
	if h.SeparateType {
		a.typ = append(a.typ[:0], h.Type...)
		a.sends[1] = a.send(peer, h.DataTag(), proc.Payload{Mem: a.typ, Count: int64(len(a.typ)), Dtype: uint64(datatype.Byte)})
	}
	if h.Len > 0 && !inline {
		a.out = out.Items
		a.sends[2] = a.send(peer, h.DataTag(), out)
	}
	o.w.server.CarryOn() // the target may be this proc itself
	return a
}

// size returns how many bytes x has as it is sent.
func size(x *proc.Payload) int64 {
	if x.Items != nil {
		return x.Items.Buf.Size(x.Items.Rep)
	}
	return int64(len(x.Mem))
}

func (a *access) inline(peer message.Peer, h *rma.Header, out proc.Payload, swap *proc.Buffer) {
	p, room := a.w.Process, a.head[len(a.head)-int(h.Len):]
	n := unload(p, room, &out)
	if swap != nil {
		other := p.Data.Exactly(peer, *swap)
		unload(p, room[n:], &other)
	}
}

// unload copies a payload as it is sent, and returns its size.
func unload(p *proc.Process, dst []byte, x *proc.Payload) int {
	if x.Items == nil {
		return copy(dst, x.Mem)
	}
	n := int(size(x))
	if n > 0 {
		x.Items.Pack(dst[:n], 0)
	}
	p.Data.Retire(x.Items)
	return n
}

func (a *access) expect(peer message.Peer, h *rma.Header, in *proc.Buffer) {
	if !h.Kind.HasAnswer() {
		return
	}
	p := a.w.Process
	c := proc.Payload{Mem: a.code[:]}
	if in != nil {
		c = p.Data.Exactly(peer, *in)
		a.in = c.Items
	}
	a.answer = p.Irecv(a.w.incoming(wire.CommRank(a.rank), h.AnswerTag()), peer, &c)
}

func (a *access) send(peer message.Peer, tag int32, x proc.Payload) *message.Request {
	return a.w.Process.Isend(peer, a.w.c.Envelope(int(tag)), message.Standard, &x, false)
}

func (o *Origin) newAccess(rank int) *access {
	n := len(o.spare)
	if n == 0 {
		return &access{w: o.w, rank: rank}
	}
	a := o.spare[n-1]
	o.spare = o.spare[:n-1]
	a.rank = rank
	return a
}

const spareAccesses = 64

// discard keeps an access for reuse, if it is not needed any more.
func (a *access) discard() {
	if a.queued || a.held {
		return
	}
	w := a.w
	if len(w.origin.spare) < spareAccesses && cap(a.typ) <= rma.HeaderSize {
		*a = access{Uncancellable: a.Uncancellable, w: w, head: a.head, typ: a.typ}
		w.origin.spare = append(w.origin.spare, a)
	}
}

// Done reports whether the request is complete at the origin, and ends it then.
func (a *access) Done() bool {
	if a.ended {
		return true
	}
	for _, r := range a.sends {
		if r != nil && !r.Done() {
			return false
		}
	}
	if a.answer != nil && !a.answer.Done() {
		return false
	}
	a.end()
	return true
}

// end releases all messages and records the first error. Some may not be done if the job is over.
func (a *access) end() {
	p := a.w.Process
	a.ended = true
	for i, r := range a.sends {
		if r == nil {
			continue
		}
		var items *proc.Stream
		if i == 2 {
			items = a.out
		}
		if err := p.End(r, items); a.err == nil {
			a.err = err
		}
	}
	if a.answer != nil {
		n, done := a.answer.Result().Len, a.answer.Done()
		if err := p.End(a.answer, a.in); a.err == nil {
			a.err = err
		}
		if done && a.err == nil {
			a.err = a.verdict(n)
		}
	}
	a.sends, a.answer, a.in, a.out = [3]*message.Request{}, nil, nil, nil
	if a.err != nil {
		a.err = fmt.Errorf("rank %d: %w", a.rank, a.err)
	}
}

// verdict returns the error that an answer of n bytes means. An answer is data, a code, or empty if
// the target has refused the operation.
func (a *access) verdict(n int64) error {
	switch {
	case a.want == 0 && n == 1:
		return rma.Code(a.code[0]).Err()
	case a.want == n:
		return nil
	case n > 0 || a.want == 0:
		return fmt.Errorf("%w: an answer of %d bytes instead of %d", rma.ErrHeader, n, a.want)
	case a.w.flavor == WinFlavorDynamic:
		return rma.ErrRange
	}
	return rma.ErrConflict
}

// The methods below make an access the operation of a Request.

func (a *access) Status() (proc.Status, error) { return proc.EmptyStatus, a.err }

func (a *access) Finish() (proc.Status, error) {
	a.Gen++
	if !a.Done() {
		a.held = false
		return proc.Status{}, a.w.Process.Failure
	}
	err := a.err
	a.held, a.err = false, nil // the error is reported by this call only
	a.discard()
	return proc.EmptyStatus, err
}

// Free lets the operation continue without its Request; the synchronisation that follows completes
// it.
func (a *access) Free() error {
	a.Gen++
	a.held = false
	return nil
}
