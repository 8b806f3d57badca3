package socket

import (
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/unproved"
)

// How many connections a Waiting has at most. A job's procs greet within milliseconds,
// so that not so many of theirs are there at a time, though all dial at once.
const (
	waitingThere = 128 // of one address
	waitingAll   = 256
)

// Waiting bounds the accepted connections whose peers have not proved yet that they
// belong to the job. When a further one comes and there is no room, the oldest of
// the same address goes, or of the address that has most.
type Waiting struct {
	mu   sync.Mutex
	room *unproved.Room[*waiter]
}

type waiter struct{ evict func() }

// NewWaiting makes one without connections, each of which will have as many file
// descriptors as each says. Together they have no more than a quarter of those that the
// process may have, but for the first 8: so a process has one Waiting, or few.
func NewWaiting(each int) *Waiting {
	return &Waiting{room: unproved.NewRoom[*waiter](Bounds(waitingThere, waitingAll, each))}
}

// Bounds are how many connections that have proved nothing a process has: so many of one
// address and in all, or fewer, so that those who have each so many file descriptors have no
// more than a quarter of those that the process may have. The least are 4 and 8.
func Bounds(there, all, each int) unproved.Limits {
	var files unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &files) == nil {
		all = int(min(uint64(all), max(8, files.Cur/4/uint64(each))))
	}
	return unproved.Limits{PerSource: min(there, all/2), Total: all}
}

// Enter adds a connection, and evicts another one if there is no room. evict is called
// when this one must go; leave tells that it has gone, or has proved itself, and may be
// called again.
func (w *Waiting) Enter(from unproved.Source, evict func()) (leave func()) {
	x := &waiter{evict}
	w.mu.Lock()
	out, evicted := w.room.Enter(x, from)
	w.mu.Unlock()
	if evicted {
		out.evict()
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.room.Leave(x)
	}
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
