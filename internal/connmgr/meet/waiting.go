package meet

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
)

// waiting is a connection to a port that has been let in and not accepted yet.
type waiting struct {
	link      link.Link
	transport string
	since     time.Time // when it was let in
}

// hungUp reports whether the other end of a link that nobody reads has closed it.
func (c waiting) hungUp() bool {
	fds := []unix.PollFd{{Fd: int32(c.link.Handle()), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0
}
