package socket

import (
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
)

// Counts returns how many bytes this link has sent and received. No Send or Recv
// may be in progress.
func (l *Link) Counts() (sent, received uint64) { return l.stage.sent, l.recv.moved }

// RTT returns the kernel's estimate of the round-trip time; ok is false except for TCP. It
// is smoothed over what was sent so far, and includes the time that the peer takes to
// acknowledge.
func (l *Link) RTT() (rtt time.Duration, ok bool) {
	if !l.enter(closed) {
		return 0, false
	}
	defer l.leave()
	rtt, _, ok = ofTCP(l.Handle())
	return rtt, ok && rtt > 0
}

// Resent returns how many segments TCP has sent again.
func (l *Link) Resent() uint64 {
	if !l.enter(closed) {
		return 0
	}
	defer l.leave()
	_, n, _ := ofTCP(l.Handle())
	return n
}

// ofTCP returns what the kernel knows of a TCP socket: its estimate of the round-trip time, 0
// before there is one, and how many segments it has sent again. ok is false for other sockets.
func ofTCP(fd int) (rtt time.Duration, retransmits uint64, ok bool) {
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return 0, 0, false
	}
	return time.Duration(info.Rtt) * time.Microsecond, uint64(info.Total_retrans), true
}

// Retransmits adds up, by names, how many segments TCP has sent again on links, also on those that
// are closed by now. Its zero value has none.
type Retransmits struct {
	mu     sync.Mutex
	open   map[*Link]*resent
	closed map[string]uint64
}

// resent is what a link has sent again when that was looked at last.
type resent struct {
	name     string
	segments uint64
}

// Count counts a link of this package that nothing has used yet. Links of other packages, and those
// that are not TCP's, have nothing to count.
func (r *Retransmits) Count(x link.Link, name string) {
	is, ok := x.(interface{ self() *Link })
	if !ok {
		return
	}
	l := is.self()
	if _, _, tcp := ofTCP(l.Handle()); !tcp || l.counted != nil {
		return
	}
	l.counted = r
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		r.open, r.closed = make(map[*Link]*resent), make(map[string]uint64)
	}
	r.open[l] = &resent{name: name}
	r.closed[name] += 0
}

// self finds the link in one that has it embedded.
func (l *Link) self() *Link { return l }

// ends counts what a link whose socket is about to be closed, or given up, has sent again.
func (r *Retransmits) ends(l *Link, fd int) {
	_, n, _ := ofTCP(fd)
	r.mu.Lock()
	defer r.mu.Unlock()
	if x := r.open[l]; x != nil {
		r.closed[x.name] += max(n, x.segments)
		delete(r.open, l)
	}
}

// Totals returns the sums. They never fall.
func (r *Retransmits) Totals() map[string]uint64 {
	r.mu.Lock()
	open := slices.Collect(maps.Keys(r.open))
	r.mu.Unlock()
	now := make(map[*Link]uint64, len(open))
	for _, l := range open { // without the lock, which the last call on a closed link takes
		if l.enter(closed) {
			_, now[l], _ = ofTCP(l.Handle())
			l.leave()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	sums := maps.Clone(r.closed)
	for l, x := range r.open {
		x.segments = max(x.segments, now[l])
		sums[x.name] += x.segments
	}
	return sums
}
