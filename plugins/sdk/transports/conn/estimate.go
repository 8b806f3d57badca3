package conn

import (
	"io"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/transports"
)

// Estimate returns what a connection, or the one below it, has measured for itself: the smoothed
// round-trip time, 0 if there is none yet, and how many segments TCP has sent again. A connection
// that is not TCP's says the time by a method RTT, and the segments by a method Resent; without
// that its packets are counted by its transport.
func Estimate(c io.Closer) (rtt time.Duration, retransmits uint64) {
	switch x := c.(type) {
	case interface{ RTT() (time.Duration, bool) }:
		rtt, _ = x.RTT()
		if y, ok := c.(interface{ Resent() uint64 }); ok {
			retransmits = y.Resent()
		}
	case interface{ NetConn() net.Conn }:
		return Estimate(x.NetConn())
	case interface{ Parts() []transports.Conn }: // over all of which its bytes go
		for _, part := range x.Parts() {
			longest, again := Estimate(part)
			rtt, retransmits = max(rtt, longest), retransmits+again
		}
	case syscall.Conn:
		raw, err := x.SyscallConn()
		if err != nil {
			return 0, 0
		}
		_ = raw.Control(func(fd uintptr) { // fails only if it is closed
			if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
				rtt, retransmits = time.Duration(info.Rtt)*time.Microsecond, uint64(info.Total_retrans)
			}
		})
	}
	return rtt, retransmits
}
