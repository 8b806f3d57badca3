package window

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/rma"
	"github.com/openimpi/impi/internal/engine/proc"
)

const (
	// headerSlots is how many headers can be on their way into this proc's own
	// memory at a time; others wait where messages wait that nobody has asked for.
	headerSlots = 8
	// heldHeaders is how many headers are kept because of what is before them.
	// Others are not listened to until some are gone.
	heldHeaders = 256
)

// slot is a receive of a header from anybody.
type slot struct {
	r   *message.Request
	buf [rma.HeaderSize]byte
}

// client is another member, or this one, as one that begins operations here.
type client struct {
	rank    int
	peer    message.Peer
	jobs    int      // that are under way
	atomics int      // of which need an order
	held    [][]byte // headers that wait for them
	lock    uint32   // number of the header that asks for the lock
	code    rma.Code // of what went wrong since it asked
}

// codes are the bytes of answers.
var codeBytes = [...]byte{byte(rma.Done), byte(rma.OutOfRange), byte(rma.Conflicting)}

// listen begins to receive a header.
func (w *Win) listen(s *slot) {
	s.r = w.Process.Eng.Recv(w.incoming(message.AnySource, rma.HeaderTag), message.NoPeer, s.buf[:])
	w.Process.Began(s.r)
}

// CarryOn is of backgroundOp: it serves the others as far as that goes without waiting.
// The process is locked, and stays so.
func (w *Win) CarryOn() bool {
	for !w.over && (w.finishJobs() || w.hear()) {
	}
	return w.over
}

// until makes progress until something is so. The process is locked.
func (w *Win) until(so func() (bool, error)) error {
	for {
		w.CarryOn()
		if done, err := so(); done || err != nil {
			return err
		}
		if w.Process.Failure != nil {
			return w.Process.Failure
		}
		w.Process.Turn()
	}
}

// broken ends the job because a member does what none of ours does.
func (w *Win) broken(rank int, err error) {
	w.over = true
	w.Process.Fail(fmt.Errorf("window %s: rank %d: %w", w.label(), rank, err))
}

// hear takes the next header that has come.
func (w *Win) hear() bool {
	s := &w.slots[w.next]
	if w.held >= heldHeaders || !s.r.Done() {
		return false
	}
	w.next = (w.next + 1) % headerSlots
	m := s.r.Status()
	w.Process.Eng.Release(s.r)
	if errors.Is(m.Err, message.ErrPeerDown) { // in the middle of it
		w.listen(s)
		return true
	}
	c, err := w.client(int(m.Source), m.Peer)
	if err == nil {
		err = m.Err
	}
	var h rma.Header
	if err == nil {
		h, err = rma.Parse(s.buf[:m.Len])
	}
	if err != nil {
		w.broken(int(m.Source), err)
		return false
	}
	if len(c.held) > 0 || !c.ready(&h) {
		c.held = append(c.held, bytes.Clone(s.buf[:m.Len]))
		w.held++
	} else {
		w.serve(c, &h)
	}
	if !w.over {
		w.listen(s)
	}
	return true
}

// client gives the member that a header says it comes from, if it does.
func (w *Win) client(rank int, peer message.Peer) (*client, error) {
	if c := w.clients[rank]; c != nil && c.peer == peer {
		return c, nil
	}
	if proc, ok := w.c.Comm.Group().At(rank); !ok || message.Peer(proc) != peer {
		return nil, fmt.Errorf("%w: proc %d says that it is that rank", rma.ErrHeader, peer)
	}
	c := &client{rank: rank, peer: peer}
	w.clients[rank] = c
	return c, nil
}

// ready tells whether h need not wait for what came before it.
func (c *client) ready(h *rma.Header) bool {
	switch {
	case h.Kind.Drains():
		return c.jobs == 0
	case h.Kind.Atomic():
		return c.atomics == 0
	}
	return true
}

// goOn serves what c's jobs have held up.
func (w *Win) goOn(c *client) {
	for len(c.held) > 0 && !w.over {
		h, err := rma.Parse(c.held[0])
		if err != nil {
			w.broken(c.rank, err) // though it was right before
			return
		}
		if !c.ready(&h) {
			return
		}
		c.held = c.held[1:]
		w.held--
		w.serve(c, &h)
	}
}

// serve does what a header asks for, or begins to.
func (w *Win) serve(c *client, h *rma.Header) {
	var err error
	switch h.Kind {
	case rma.Lock:
		err = w.grant(c, h)
	case rma.Unlock:
		w.settle(c, h)
		err = w.release(c)
	case rma.Flush:
		w.settle(c, h)
	case rma.Post:
		w.posts.Add(c.rank)
	case rma.Complete:
		w.completes.Add(c.rank)
	default:
		err = w.operation(c, h)
	}
	if err != nil {
		w.broken(c.rank, fmt.Errorf("%v: %w", h.Kind, err))
	}
}

// settle tells an origin how all that it has begun has ended.
func (w *Win) settle(c *client, h *rma.Header) {
	w.answer(c, h.AnswerTag(), c.code)
	c.code = rma.Done
}

// answer sends a code.
func (w *Win) answer(c *client, tag int32, code rma.Code) {
	w.reply(c, tag, proc.Cargo{Mem: codeBytes[code : code+1], Count: 1, Dtype: uint64(datatype.Byte)})
}

// reply sends what nobody here waits for, but Free.
func (w *Win) reply(c *client, tag int32, x proc.Cargo) {
	r := w.Process.Post(c.peer, w.c.Envelope(int(tag)), message.Standard, &x, true)
	if r.Done() {
		_ = w.Process.End(r, nil) // if it failed the origin is gone
		return
	}
	w.answers = append(w.answers, r)
}

// grant has an origin lock this proc's memory, now or when its turn comes.
func (w *Win) grant(c *client, h *rma.Header) error {
	c.lock = h.Seq
	granted, err := w.locks.Request(c.rank, h.Lock)
	if granted {
		w.answer(c, h.AnswerTag(), rma.Done)
	}
	return err
}

// release takes the lock back and gives it to those whose turn it is.
func (w *Win) release(c *client) (err error) {
	w.granted, err = w.locks.Release(c.rank, w.granted[:0])
	for _, rank := range w.granted {
		next := w.clients[rank]
		h := rma.Header{Seq: next.lock}
		w.answer(next, h.AnswerTag(), rma.Done)
	}
	return err
}
