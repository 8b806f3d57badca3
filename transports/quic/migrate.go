package quic

import (
	"errors"
	"fmt"
	"log"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// portSocket is the socket of a listener. When the network does not take a packet,
// for an address has gone or an interface is down, it is lost like any other: the
// peer may be elsewhere already.
type portSocket struct{ *net.UDPConn }

// WriteMsgUDP sends a packet.
func (u portSocket) WriteMsgUDP(b, oob []byte, to *net.UDPAddr) (n, oobn int, err error) {
	n, oobn, err = u.UDPConn.WriteMsgUDP(b, oob, to)
	if err != nil && lostNetwork(err) {
		return len(b), len(oob), nil
	}
	return n, oobn, err
}

// udpSocket is the socket of one dialled connection. It can change its address and
// port while it is in use, as a device that translates addresses changes them; the
// peer follows. The library's own way to do that, a second socket on which it
// probes, waits until its congestion window is open: never, when a transfer was
// under way as the path died.
type udpSocket struct {
	*net.UDPConn
	from  netip.Addr   // as wanted
	moved atomic.Int64 // UnixNano of the last rebind
	count *atomic.Int64
}

// rebindEvery is the least time between two changes for packets that the network
// does not take.
const rebindEvery = 100 * time.Millisecond

// WriteMsgUDP sends a packet. When the network does not take it, it is lost, and
// the next ones may come from another address.
func (u *udpSocket) WriteMsgUDP(b, oob []byte, to *net.UDPAddr) (n, oobn int, err error) {
	n, oobn, err = u.UDPConn.WriteMsgUDP(b, oob, to)
	if err == nil || !lostNetwork(err) {
		return n, oobn, err
	}
	if time.Now().UnixNano()-u.moved.Load() > int64(rebindEvery) {
		u.rebind()
	}
	return len(b), len(oob), nil
}

// lostNetwork reports whether an error is about the way, not about the packet.
func lostNetwork(err error) bool {
	for _, e := range []syscall.Errno{syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.ENETDOWN, syscall.EADDRNOTAVAIL, syscall.EINVAL} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// rebind gives the socket another port, and another address if its own is no
// more.
func (u *udpSocket) rebind() {
	u.moved.Store(time.Now().UnixNano())
	raw, err := u.SyscallConn()
	if err != nil {
		return // it is closed
	}
	_ = raw.Control(func(fd uintptr) { err = rebind(int(fd), u.from) }) // fails if it is closed
	if err != nil {
		log.Printf("[WARN] quic: another port for the connection: %v", err)
		return
	}
	u.count.Add(1)
}

// rebind takes a UDP socket away from its port and binds it to any other one. To
// the kernel it stays the same socket, with its options and who waits for it.
func rebind(fd int, from netip.Addr) error {
	none := unix.RawSockaddr{Family: unix.AF_UNSPEC}
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&none)), unsafe.Sizeof(none))
	if errno != 0 {
		return fmt.Errorf("take a UDP socket away from its port: %w", errno)
	}
	err := unix.Bind(fd, sockaddr(from))
	if errors.Is(err, unix.EADDRNOTAVAIL) {
		err = unix.Bind(fd, sockaddr(unspecified(from)))
	}
	if err != nil {
		return fmt.Errorf("bind a UDP socket again: %w", err)
	}
	return nil
}

func sockaddr(a netip.Addr) unix.Sockaddr {
	if a.Is4() {
		return &unix.SockaddrInet4{Addr: a.As4()}
	}
	return &unix.SockaddrInet6{Addr: a.As16()}
}

func unspecified(like netip.Addr) netip.Addr {
	if like.Is4() {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

// watch looks for silence on a dialled connection. When nothing answers any more,
// not even the questions of keepalive, a device on the way may have forgotten us:
// another port may do. The peer is given time to notice, more each time.
func (c *connection) watch(u *udpSocket) {
	tick := time.NewTicker(c.settings.keepalive / 10)
	defer tick.Stop()
	var heard, sent uint64 // packets, when something was heard last
	for silent, limit := 0, 3; c.next(tick); {
		s := c.qc.ConnectionStats()
		if s.PacketsReceived != heard || s.PacketsSent <= sent+1 {
			if s.PacketsReceived != heard {
				heard, sent = s.PacketsReceived, s.PacketsSent
			}
			silent, limit = 0, 3
			continue
		}
		silent++
		if silent < limit || time.Duration(silent)*c.settings.keepalive/10 < 4*s.SmoothedRTT {
			continue
		}
		if limit == 3 {
			log.Printf("[INFO] quic: nothing is heard of %s: trying another port", c.qc.RemoteAddr())
		}
		u.rebind()
		silent, limit = 0, 2*limit
	}
}

// next waits for a tick, and reports whether the connection still lives.
func (c *connection) next(tick *time.Ticker) bool {
	select {
	case <-c.qc.Context().Done():
		return false
	case <-tick.C:
		return true
	}
}
