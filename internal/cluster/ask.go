package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/openimpi/impi/internal/rpc/proto"
)

// The largest questions and answers, in bytes. They are small since they share a connection with
// the signs of life.
const (
	maxQuestion = 192 << 10
	maxAnswer   = 4 << 20
)

// Errors of questions.
var (
	// ErrAbsent means that a host is not there yet, or no longer.
	ErrAbsent = errors.New("the host is not there")
	// ErrSize means a question or an answer that is too large.
	ErrSize = errors.New("too large for the connections between hosts")
)

// Ask asks a host of the site. Any host may do so: the question goes up to the head and down from
// there, and so does the answer. Ask waits until ctx ends, at most for a minute; the host that is
// asked is told how long that is.
func (h *Host) Ask(ctx context.Context, host int, question []byte) ([]byte, error) {
	if len(question) > maxQuestion {
		return nil, fmt.Errorf("a question of %d bytes is %w", len(question), ErrSize)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if host == h.cfg.Self {
		return h.cfg.Owner.Ask(ctx, question), nil
	}
	deadline, _ := ctx.Deadline()
	m := &proto.Message{Host: int32(h.cfg.Self), Data: question, Limit: int64(time.Until(deadline))}
	var answer <-chan *proto.Message
	m.Id, answer = h.asks.add()
	defer h.asks.drop(m.Id)
	if h.up != nil {
		h.up.tell(&proto.Up{Word: &proto.Up_Asks{Asks: &proto.HostQuestion{To: int32(host), Message: m}}})
	} else {
		m.Host = int32(host)
		if !h.toward(host, &proto.Down{Word: &proto.Down_Asks{Asks: m}}) {
			return nil, ErrAbsent
		}
	}
	broken := h.broken
	var gone <-chan struct{} // the parent is
	if h.up != nil {
		gone = h.up.heard
	}
	for {
		select {
		case a := <-answer:
			return a.GetData(), errorOf(a)
		case <-broken:
			if !errors.Is(h.failed, ErrOver) {
				return nil, h.failed
			}
			broken = nil // what outlives the job asks, too
		case <-gone:
			return nil, ErrAbsent
		case <-h.ctx.Done():
			return nil, context.Cause(h.ctx)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Has tells, at the head, whether a host is there, or may be: of those that are not connected with the
// head itself it is known only whether the one by which they are is.
func (h *Host) Has(host int) bool {
	next := h.cfg.Tree.Toward(h.cfg.Self, host)
	h.mu.Lock()
	defer h.mu.Unlock()
	_, gone := h.gone[next]
	return host == h.cfg.Self || h.below[next] != nil && !gone
}

func errorOf(a *proto.Message) error {
	switch e := a.GetError(); e {
	case "":
		return nil
	case ErrAbsent.Error():
		return ErrAbsent
	case context.DeadlineExceeded.Error():
		return context.DeadlineExceeded
	default:
		return errors.New(e)
	}
}

// askFor, at the head, passes a host's question on, and the answer back.
func (h *Host) askFor(q *proto.HostQuestion) {
	h.begin(func() {
		m := q.GetMessage()
		ctx, cancel := context.WithTimeout(h.ctx, time.Duration(m.GetLimit()))
		defer cancel()
		a := &proto.Message{Host: m.GetHost(), Id: m.GetId()}
		err := ErrAbsent
		if to := int(q.GetTo()); to >= 0 && to < h.cfg.Tree.Hosts {
			a.Data, err = h.Ask(ctx, to, m.GetData())
		}
		h.toward(int(m.GetHost()), &proto.Down{Word: &proto.Down_Answer{Answer: bounded(a, err)}})
	})
}

// askedByHead answers a question that has come down, or passes it on.
func (h *Host) askedByHead(m *proto.Message, w *proto.Down) {
	a := &proto.Message{Host: m.GetHost(), Id: m.GetId()}
	if int(m.GetHost()) != h.cfg.Self {
		if !h.toward(int(m.GetHost()), w) {
			h.up.tell(&proto.Up{Word: &proto.Up_Answer{Answer: bounded(a, ErrAbsent)}})
		}
		return
	}
	h.begin(func() {
		ctx, cancel := context.WithTimeout(h.ctx, time.Duration(m.GetLimit()))
		defer cancel()
		a.Data = h.cfg.Owner.Ask(ctx, m.GetData())
		h.up.tell(&proto.Up{Word: &proto.Up_Answer{Answer: bounded(a, nil)}})
	})
}

// bounded sets the error of an answer without data, or with too much.
func bounded(a *proto.Message, err error) *proto.Message {
	if len(a.GetData()) > maxAnswer {
		err = fmt.Errorf("an answer of %d bytes is %w", len(a.GetData()), ErrSize)
	}
	if err != nil {
		a.Data, a.Error = nil, err.Error()
	}
	return a
}

// questions are the questions whose answers a host waits for; at the head also those of other hosts
// that it has passed on.
type questions struct {
	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan *proto.Message
}

// add returns the number of a new question, and the channel for its answer.
func (q *questions) add() (id uint64, answer <-chan *proto.Message) {
	c := make(chan *proto.Message, 1)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.last++
	q.waiting[q.last] = c
	return q.last, c
}

func (q *questions) drop(id uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.waiting, id)
}

// answer passes an answer to whoever waits for it, if anybody still does.
func (q *questions) answer(a *proto.Message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if c := q.waiting[a.GetId()]; c != nil {
		delete(q.waiting, a.GetId())
		c <- a
	}
}

// toward sends a message to a host below, or to the child on the way to it. It reports whether
// there is one.
func (h *Host) toward(host int, w *proto.Down) bool {
	next := h.cfg.Tree.Toward(h.cfg.Self, host)
	h.mu.Lock()
	defer h.mu.Unlock()
	q := h.below[next]
	if _, gone := h.gone[next]; gone || q == nil {
		return false
	}
	q.add(w)
	return true
}

// begin runs f in a goroutine that Close waits for, unless Close has begun.
func (h *Host) begin(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx.Err() == nil {
		h.wg.Go(f)
	}
}
