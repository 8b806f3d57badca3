package node

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/link"
)

// Bounds of ports.
const (
	defaultBacklog = 256
	maxBacklog     = 4096    // also where a proc asks for more
	maxPorts       = 1024    // of a proc
	maxTakes       = 1 << 16 // of a port: who waits for callers
)

// caller is who has called a port and has been let in.
type caller struct {
	link      link.Link
	transport string
	since     time.Time // when it was let in
}

// callPort is an open port: those who called it, or those who wait for callers,
// but never both. It is guarded by
// meetings.mu while it is open.
type callPort struct {
	owner   *proc
	key     dynamic.Token
	backlog int
	held    int // places of those who are being greeted
	callers []caller
	takes   []uint64    // requests of the owner, first come first served
	timer   *time.Timer // of the lifetime; nil: it has none

	spawned *offspring // who is to call
	broken  string     // why nobody will; empty: somebody may
}

// hold keeps a place for a caller until enter or letGo. False: the port is crowded.
func (c *callPort) hold() bool {
	if len(c.callers)+c.held >= c.backlog {
		c.sweep()
	}
	if len(c.callers)+c.held >= c.backlog {
		return false
	}
	c.held++
	return true
}

// enter gives the caller to who waits for one, or lets it wait in its place.
func (c *callPort) enter(x caller) (request uint64, taken bool) {
	c.held--
	if len(c.takes) == 0 {
		c.callers = append(c.callers, x)
		return 0, false
	}
	request, c.takes = c.takes[0], c.takes[1:]
	return request, true
}

// take gives the first caller that is still there, or has request wait for one.
// full tells that too many wait already.
func (c *callPort) take(request uint64) (x caller, ok, full bool) {
	for len(c.callers) > 0 {
		x, c.callers = c.callers[0], c.callers[1:]
		if !hungUp(x.link) {
			return x, true, false
		}
		_ = x.link.Close()
	}
	if len(c.takes) >= maxTakes {
		return caller{}, false, true
	}
	c.takes = append(c.takes, request)
	return caller{}, false, false
}

// cancel ends the wait of a request. False: it does not wait.
func (c *callPort) cancel(request uint64) bool {
	i := slices.Index(c.takes, request)
	if i < 0 {
		return false
	}
	c.takes = slices.Delete(c.takes, i, i+1)
	return true
}

// hangUp ends a port that nobody finds any more, and gives the requests that waited.
func (c *callPort) hangUp() (requests []uint64) {
	if c.timer != nil {
		c.timer.Stop()
	}
	for _, x := range c.callers {
		_ = x.link.Close()
	}
	requests, c.callers, c.takes = c.takes, nil, nil
	return requests
}

// sweep closes the links of callers that have gone away.
func (c *callPort) sweep() {
	kept := c.callers[:0]
	for _, x := range c.callers {
		if hungUp(x.link) {
			_ = x.link.Close()
			continue
		}
		kept = append(kept, x)
	}
	clear(c.callers[len(kept):])
	c.callers = kept
}

// hungUp tells whether the other end of a link that nobody reads has closed it.
func hungUp(l link.Link) bool {
	fds := []unix.PollFd{{Fd: int32(l.Handle()), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0
}
