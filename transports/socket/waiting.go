package socket

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/unproved"
)

// Limits of a Waiting.
const (
	waitingThere = 128 // connections of one address
	waitingAll   = 256
	// waitingAge is how long a connection has at least before it makes room. Where a
	// job's procs all dial at once it is not they who have to go.
	waitingAge = 2 * time.Second
)

// Waiting bounds the accepted connections whose peers have not proved yet that they
// belong to the job. When a further one comes and there is no room, the oldest of
// the same address goes.
type Waiting struct {
	mu   sync.Mutex
	room *unproved.Room[*waiter]
	left chan struct{} // closed, and replaced, when one leaves
}

type waiter struct{ evict func() }

// NewWaiting makes one without connections.
func NewWaiting() *Waiting {
	limits := unproved.Limits{PerSource: waitingThere, Total: waitingAll, MinAge: waitingAge}
	return &Waiting{room: unproved.NewRoom[*waiter](limits), left: make(chan struct{})}
}

// Enter waits for room. evict is called when the connection must go; leave tells
// that it has gone, or has proved itself, and may be called again. The error is the
// context's.
func (w *Waiting) Enter(ctx context.Context, from unproved.Source, evict func()) (leave func(), err error) {
	x := &waiter{evict}
	for {
		out, wait, left := w.enter(x, from)
		if out != nil {
			out.evict()
		}
		if wait == 0 {
			return func() { w.leave(x) }, nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-left:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
		timer.Stop()
	}
}

func (w *Waiting) enter(x *waiter, from unproved.Source) (out *waiter, wait time.Duration, left <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	out, _, wait = w.room.Enter(x, from, time.Now())
	return out, wait, w.left
}

func (w *Waiting) leave(x *waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.room.Leave(x)
	close(w.left)
	w.left = make(chan struct{})
}

// SourceOf is where a link comes from, as far as it counts for limits. One that is no
// socket, or a Unix socket, has no address.
func SourceOf(l link.Link) unproved.Source {
	if s, ok := l.(*Link); ok {
		return s.source
	}
	return unproved.Source{}
}

func sourceOfPeer(far unix.Sockaddr) unproved.Source {
	switch a := far.(type) {
	case *unix.SockaddrInet4:
		return unproved.From(netip.AddrFrom4(a.Addr))
	case *unix.SockaddrInet6:
		return unproved.From(netip.AddrFrom16(a.Addr))
	}
	return unproved.Source{}
}
