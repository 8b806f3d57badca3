package socket

import (
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/support/unproved"
)

// Limits of the connections of a Waiting. A job's procs greet within milliseconds, so even if all
// dial at once fewer of their connections wait at a time.
const (
	waitingThere = 128 // from one address
	waitingAll   = 256
)

// Waiting limits the accepted connections whose peers have not proved yet that they belong to the
// job (docs/decisions/0033-unproved-connections.md). If there is no room for a new one, it closes
// the oldest from the same address, or from the address that has most.
type Waiting struct {
	mu   sync.Mutex
	room *unproved.Set[*waiter]
}

type waiter struct{ evict func() }

// NewWaiting makes a Waiting for connections that use each file descriptors. Together they
// use at most a quarter of the descriptors of the process, except for the first 8. So a
// process should have one Waiting, or few.
func NewWaiting(each int) *Waiting {
	return &Waiting{room: unproved.NewSet[*waiter](Bounds(waitingThere, waitingAll, each))}
}

// NewWaitingForSeveral is NewWaiting for links that are made of so many connections each: it has
// room for as many links, unless the process has too few descriptors.
//
// Deprecated: since version 1.1.0 of the SDK links do not wait for their further connections; use
// NewWaiting.
func NewWaitingForSeveral(connections int) *Waiting {
	return &Waiting{room: unproved.NewSet[*waiter](Bounds(waitingThere*connections, waitingAll*connections, 1))}
}

// Bounds returns how many unproved connections a process may have: there from one address
// and all in total, or fewer, so that with each descriptors they use at most a quarter of
// those of the process. It never returns less than 4 and 8.
func Bounds(there, all, each int) unproved.Limits {
	var files unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &files) == nil {
		all = int(min(uint64(all), max(8, files.Cur/4/uint64(each))))
	}
	return unproved.Limits{PerSource: min(there, all/2), Total: all}
}

// Enter adds a connection, and evicts another one if there is no room. evict is called if
// this one must be closed. The caller calls leave when the connection has ended or has
// proved itself; leave may be called again.
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

// SourceOf returns where a link comes from, for the limits. A link that is not a socket, or
// a Unix socket, has no address.
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
