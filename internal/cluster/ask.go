package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/openimpi/impi/internal/cluster/neighbour"
	"github.com/openimpi/impi/internal/rpc/proto"
)

// maxQuestion is the size of the largest question in bytes: it shares a connection with the signs
// of life.
const maxQuestion = 192 << 10

// Errors of questions.
var (
	ErrAbsent = neighbour.ErrAbsent
	ErrSize   = neighbour.ErrSize
)

// Ask sends a question to a host of the site and returns its answer. Any host may do so: the
// question goes up to the head and down from there, and so does the answer. Ask waits until ctx
// ends, at most for a minute; the question carries that limit.
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
	answer := make(chan *proto.Message, 1)
	h.mu.Lock()
	id, up, down := h.asks.Ask(host, question, time.Until(deadline), func(a *proto.Message) { answer <- a })
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.asks.Drop(id)
	}()
	if up != nil {
		h.up.tell(up)
	} else if !h.toward(host, down) {
		return nil, ErrAbsent
	}
	broken := h.broken
	var gone <-chan struct{} // closed when the parent is gone
	if h.up != nil {
		gone = h.up.heard
	}
	for {
		select {
		case a := <-answer:
			return a.GetData(), neighbour.ErrorOf(a)
		case <-broken:
			if !errors.Is(h.failed, ErrOver) {
				return nil, h.failed
			}
			broken = nil // processes that outlive the job ask, too
		case <-gone:
			return nil, ErrAbsent
		case <-h.ctx.Done():
			return nil, context.Cause(h.ctx)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Has reports, at the head, whether a host is there, or may be: if the host is not connected with
// the head itself, Has reports whether the child above the host is there.
func (h *Host) Has(host int) bool {
	next := h.cfg.Tree.ChildToward(h.cfg.Self, host)
	h.mu.Lock()
	defer h.mu.Unlock()
	_, gone := h.gone[next]
	return host == h.cfg.Self || h.below[next] != nil && !gone
}

// askFor, at the head, passes a host's question on, and the answer back.
func (h *Host) askFor(q *proto.HostQuestion) {
	h.begin(func() {
		m := q.GetMessage()
		ctx, cancel := context.WithTimeout(h.ctx, time.Duration(m.GetLimit()))
		defer cancel()
		var data []byte
		err := ErrAbsent
		if to := int(q.GetTo()); to >= 0 && to < h.cfg.Tree.Hosts {
			data, err = h.Ask(ctx, to, m.GetData())
		}
		h.toward(int(m.GetHost()), neighbour.ForwardAnswer(m, data, err))
	})
}

// fromHead handles a question or an answer from the head, or passes it on toward the host it is
// for.
func (h *Host) fromHead(w *proto.Down) {
	h.mu.Lock()
	m, to, pass := h.asks.FromParent(w)
	h.mu.Unlock()
	switch {
	case pass && !h.toward(to, w) && w.GetAsks() != nil: // no host waits for an undeliverable answer
		h.up.tell(neighbour.Reply(w.GetAsks(), nil, ErrAbsent))
	case m != nil:
		h.begin(func() {
			ctx, cancel := context.WithTimeout(h.ctx, time.Duration(m.GetLimit()))
			defer cancel()
			h.up.tell(neighbour.Reply(m, h.cfg.Owner.Ask(ctx, m.GetData()), nil))
		})
	}
}

// toward sends a message to a host below, or to the child on the way to it. It reports whether
// there is one.
func (h *Host) toward(host int, w *proto.Down) bool {
	next := h.cfg.Tree.ChildToward(h.cfg.Self, host)
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
