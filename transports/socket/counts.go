package socket

import (
	"time"

	"golang.org/x/sys/unix"
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
	info, err := unix.GetsockoptTCPInfo(int(l.fd.Load()), unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil || info.Rtt == 0 {
		return 0, false
	}
	return time.Duration(info.Rtt) * time.Microsecond, true
}
