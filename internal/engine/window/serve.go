package window

import (
	"bytes"
	"errors"
	"fmt"
	"sync"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/rma"
	"github.com/openimpi/impi/internal/engine/proc"
)

const (
	// headerSlots is the number of receives that wait for headers; other headers are unexpected
	// messages.
	headerSlots = 8
	// heldHeaders is the most headers that are kept until operations before them are complete.
	// No more are received then.
	heldHeaders = 256
)

type slot struct {
	r   *message.Request
	buf [rma.HeaderSize]byte
}

// client is a member of the window, perhaps this one, as the origin of operations here.
type client struct {
	rank    int
	peer    message.Peer
	jobs    int      // jobs of this origin under way
	atomics int      // jobs of this origin under way that must be executed in order
	held    [][]byte // headers that wait for these jobs
	lock    uint32   // sequence number of its header that asks for the lock
	code    rma.Code // of the first operation that has failed since its last answer
}

// codeBytes has the answers in memory that does not change while they are sent.
var codeBytes = [...]byte{byte(rma.Done), byte(rma.OutOfRange), byte(rma.Conflicting)}

// freeSlots has the slots of windows that were freed: with memory of this size for each window, a
// program that makes and frees them in a loop does little but collect garbage.
var freeSlots = sync.Pool{New: func() any { return new([headerSlots]slot) }}

func newSlots() *[headerSlots]slot { return freeSlots.Get().(*[headerSlots]slot) }

// deafen ends all receives of headers. Slots into which a message is being received are not used
// again.
func (s *server) deafen() {
	done := true
	for i := range s.slots {
		r := s.slots[i].r
		s.w.Process.Eng.Cancel(r)
		done = done && r.Done()
		s.w.Process.Eng.Release(r)
		s.slots[i].r = nil
	}
	if done {
		freeSlots.Put(s.slots)
	}
	s.slots = nil
}

func (s *server) listen(in *slot) {
	in.r = s.w.Process.Eng.RecvOwn(s.w.incoming(message.AnySource, rma.HeaderTag), message.NoPeer, in.buf[:])
	s.w.Process.Endpoints.ReceivePosted(in.r)
}

// WaitsForMessage implements proc.MessageDriven.
func (s *server) WaitsForMessage() bool {
	return s.over || len(s.jobs)+len(s.answers)+s.held == 0 && !s.slots[s.next].r.Done()
}

// CarryOn implements proc.BackgroundOp: it serves the origins as far as possible without waiting.
// The process stays locked.
func (s *server) CarryOn() bool {
	for !s.over && (s.finishJobs() || s.hear()) {
	}
	return s.over
}

// until makes progress until so returns true or an error. Meanwhile diagnoses say that this proc
// waits for x. The process is locked.
func (s *server) until(x awaited, so func() (bool, error)) error {
	waits := false
	defer func() {
		if waits {
			s.waits.end(x)
		}
	}()
	for {
		s.CarryOn()
		if done, err := so(); done || err != nil {
			return err
		}
		if s.w.Process.Failure != nil {
			return s.w.Process.Failure
		}
		if !waits {
			x, waits = s.waits.begin(x), true
		}
		s.w.Process.Account.AwaitFor(proc.ForWindow, message.NoPeer)
	}
}

// broken ends the job because a member does not follow the protocol.
func (s *server) broken(rank int, err error) {
	s.over = true
	s.w.Process.SetFailed(fmt.Errorf("window %s: rank %d: %w", s.w.Label(), rank, err))
}

func (s *server) hear() bool {
	in := &s.slots[s.next]
	if s.held >= heldHeaders || !in.r.Done() {
		return false
	}
	s.next = (s.next + 1) % headerSlots
	m := in.r.Status()
	s.w.Process.Eng.Release(in.r)
	if errors.Is(m.Err, message.ErrPeerDown) { // the peer went down while it sent the header
		s.listen(in)
		return true
	}
	c, err := s.client(int(m.Source), m.Peer)
	if err == nil {
		err = m.Err
	}
	var h rma.Header
	if err == nil {
		h, err = rma.Parse(in.buf[:m.Len])
	}
	if err != nil {
		s.broken(int(m.Source), err)
		return false
	}
	if len(c.held) > 0 || !c.ready(&h) {
		c.held = append(c.held, bytes.Clone(in.buf[:m.Len]))
		s.held++
	} else {
		s.serve(c, &h)
	}
	if !s.over {
		s.listen(in)
	}
	return true
}

func (s *server) client(rank int, peer message.Peer) (*client, error) {
	if c := s.clients[rank]; c != nil && c.peer == peer {
		return c, nil
	}
	if proc, ok := s.w.c.Comm.Group().At(rank); !ok || message.Peer(proc) != peer {
		return nil, fmt.Errorf("%w: proc %d says that it is that rank", rma.ErrHeader, peer)
	}
	c := &client{rank: rank, peer: peer}
	if s.clients == nil {
		s.clients = make(map[int]*client)
	}
	s.clients[rank] = c
	return c, nil
}

// ready reports whether h need not wait for earlier operations.
func (c *client) ready(h *rma.Header) bool {
	switch {
	case h.Kind.Drains():
		return c.jobs == 0
	case h.Kind.Atomic():
		return c.atomics == 0
	}
	return true
}

// goOn serves headers of c that have waited for its jobs.
func (s *server) goOn(c *client) {
	for len(c.held) > 0 && !s.over {
		h, err := rma.Parse(c.held[0])
		if err != nil {
			s.broken(c.rank, err) // its datatype was valid when it came
			return
		}
		if !c.ready(&h) {
			return
		}
		c.held = c.held[1:]
		s.held--
		s.serve(c, &h)
	}
}

func (s *server) serve(c *client, h *rma.Header) {
	var err error
	switch h.Kind {
	case rma.Lock:
		err = s.grant(c, h)
	case rma.Unlock:
		s.settle(c, h)
		err = s.release(c)
	case rma.Flush:
		s.settle(c, h)
	case rma.Post:
		s.posts.Add(c.rank)
	case rma.Complete:
		s.completes.Add(c.rank)
	default:
		err = s.operation(c, h)
	}
	if err != nil {
		s.broken(c.rank, fmt.Errorf("%v: %w", h.Kind, err))
	}
}

// settle answers an origin with the outcome of all its operations.
func (s *server) settle(c *client, h *rma.Header) {
	s.answer(c, h.AnswerTag(), c.code)
	c.code = rma.Done
}

func (s *server) answer(c *client, tag int32, code rma.Code) {
	s.reply(c, tag, proc.Payload{Mem: codeBytes[code : code+1], Count: 1, Dtype: uint64(datatype.Byte)})
}

// reply sends an answer. Only Free waits until it has left.
func (s *server) reply(c *client, tag int32, x proc.Payload) {
	r := s.w.Process.Isend(c.peer, s.w.c.Envelope(int(tag)), message.Standard, &x, true)
	if r.Done() {
		_ = s.w.Process.End(r, nil) // an error means that the origin is down
		return
	}
	s.answers = append(s.answers, r)
}

// grant gives an origin the lock of this proc's memory, now or when its turn comes.
func (s *server) grant(c *client, h *rma.Header) error {
	if lostAt(s.w, c.rank) != nil {
		return nil // the origin asked before it was lost
	}
	c.lock = h.Seq
	granted, err := s.locks.Request(c.rank, h.Lock)
	if granted {
		s.answer(c, h.AnswerTag(), rma.Done)
	}
	return err
}

// release releases an origin's lock and grants it to the next ones.
func (s *server) release(c *client) (err error) {
	s.granted, err = s.locks.Release(c.rank, s.granted[:0])
	s.answerGranted()
	return err
}

func (s *server) answerGranted() {
	for _, rank := range s.granted {
		next := s.clients[rank]
		h := rma.Header{Seq: next.lock}
		s.answer(next, h.AnswerTag(), rma.Done)
	}
}

// lost is told of lost procs. It takes the lock of this proc's memory from a lost proc, and has C
// leave operations at it to Go, which reports them.
func (s *server) lost(peer message.Peer) {
	w := s.w
	rank, member := w.c.Comm.Group().Rank(comm.Proc(peer))
	if !member {
		return
	}
	if rank < len(w.byC.targets) {
		w.byC.targets[rank].Base = nil
	}
	s.granted = s.locks.Forget(rank, s.granted[:0])
	s.answerGranted()
}

// lostAt returns why nothing can be done at a rank, nil if it is not lost. The memory of a lost
// proc may be there still, but nobody looks at it.
func lostAt(w *Win, rank int) error {
	if w.Process.Survival == nil {
		return nil
	}
	return w.Process.Eng.Unreachable(w.peer(rank))
}
