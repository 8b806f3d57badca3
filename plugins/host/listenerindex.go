package host

import (
	"errors"
	"fmt"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/openimpi/impi/plugins/sdk/proto"
)

// listenerIndex finds the listener that an event means by its number. A link may be
// announced before the answer to Listen, which has the number, was read.
type listenerIndex struct {
	mu     sync.Mutex
	open   map[uint64]*listener
	closed map[uint64]bool
	early  []*proto.Event
}

// enter adds a listener under its number and returns the events for it that came earlier.
func (h *listenerIndex) enter(id uint64, l *listener) (before []*proto.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open == nil {
		h.open = make(map[uint64]*listener)
		h.closed = make(map[uint64]bool)
	}
	h.open[id] = l
	rest := h.early[:0]
	for _, e := range h.early {
		if listenerOf(e) == id {
			before = append(before, e)
		} else {
			rest = append(rest, e)
		}
	}
	h.early = rest
	return before
}

// leave removes a listener. Its number is kept as that of a closed one.
func (h *listenerIndex) leave(l *listener) (id uint64, found bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for n, x := range h.open {
		if x == l {
			delete(h.open, n)
			h.closed[n] = true
			return n, true
		}
	}
	return 0, false
}

var errTooEarly = errors.New("too many events for listeners that were never opened")

// find returns the listener of an event. It returns nil if the listener is closed, and also
// if it is not known yet; then the event is kept for enter.
func (h *listenerIndex) find(e *proto.Event) (*listener, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	id := listenerOf(e)
	if l := h.open[id]; l != nil || h.closed[id] {
		return l, nil
	}
	if len(h.early) >= proto.MaxWaiting {
		return nil, errTooEarly
	}
	h.early = append(h.early, e)
	return nil, nil
}

func listenerOf(e *proto.Event) uint64 {
	if a := e.GetAccepted(); a != nil {
		return a.GetListenerId()
	}
	return e.GetListenerFailed().GetListenerId()
}

// followEvents reads the plugin's events until the instance ends. A stream that breaks is
// opened again after the last event.
func (i *instance) followEvents() {
	var last uint64
	for tries := 0; tries < 3; tries++ {
		stream, err := i.rpc.Events(i.ctx, &proto.EventsRequest{After: last})
		for err == nil {
			var e *proto.Event
			if e, err = stream.Recv(); err != nil {
				break
			}
			tries = 0
			if e.GetSequence() <= last {
				continue
			}
			last = e.GetSequence()
			err = i.handle(e)
		}
		switch {
		case i.ctx.Err() != nil:
			return
		case errors.Is(err, errAnnounced), errors.Is(err, errTooEarly), status.Code(err) == codes.Unimplemented:
			i.stop(i.violation(err), 0)
			return
		case status.Code(err) == codes.Unavailable:
			i.stop(i.broken(i.ctx, "Events", err), 0)
			return
		}
	}
	i.stop(i.violation(fmt.Errorf("its stream of events ends again and again")), 0)
}

func (i *instance) handle(e *proto.Event) error {
	l, err := i.listeners.find(e)
	if l == nil || err != nil {
		return err
	}
	return l.event(i, e)
}
