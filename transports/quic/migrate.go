package quic

import (
	"errors"
	"fmt"
	"log"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// portSocket is the socket of a listener. If the network does not take a packet, because an
// address has gone or an interface is down, the packet counts as lost: the peer may already
// have another address.
type portSocket struct{ *net.UDPConn }

// WriteMsgUDP sends a packet.
func (u portSocket) WriteMsgUDP(b, oob []byte, to *net.UDPAddr) (n, oobn int, err error) {
	n, oobn, err = u.UDPConn.WriteMsgUDP(b, oob, to)
	if err != nil && lostNetwork(err) {
		return len(b), len(oob), nil
	}
	return n, oobn, err
}

// udpSocket is the socket of one dialled connection; see
// docs/decisions/0018-quic-takes-another-port.md. It can change its address and port while
// it is in use, as a NAT does, and the peer follows. The library's own migration, with
// probes on a second socket, waits until its congestion window is open, which never happens
// if the path died during a transfer.
type udpSocket struct {
	*net.UDPConn
	from  netip.Addr   // as configured
	moved atomic.Int64 // UnixNano of the last rebind
	count *atomic.Int64
}

// rebindEvery is the minimum interval between two changes because of packets that the
// network does not take.
const rebindEvery = 100 * time.Millisecond

// WriteMsgUDP sends a packet. If the network does not take it, it is lost, and the next
// ones may be sent from another address.
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

// lostNetwork reports whether an error is about the network, not about the packet.
func lostNetwork(err error) bool {
	lost := []syscall.Errno{syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.ENETDOWN, syscall.EADDRNOTAVAIL, syscall.EINVAL}
	return slices.ContainsFunc(lost, func(e syscall.Errno) bool { return errors.Is(err, e) })
}

// rebind gives the socket another port, and another address if its own has gone.
func (u *udpSocket) rebind() {
	u.moved.Store(time.Now().UnixNano())
	raw, err := u.SyscallConn()
	if err != nil {
		return // the socket is closed
	}
	_ = raw.Control(func(fd uintptr) { err = rebind(int(fd), u.from) }) // fails if the socket is closed
	if err != nil {
		log.Printf("[WARN] quic: another port for the connection: %v", err)
		return
	}
	u.count.Add(1)
}

// rebind unbinds a UDP socket and binds it to any other port. For the kernel it remains the
// same socket, with its options and waiters.
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

// firstMove is after how many ticks of silence another port is tried first. What is on its way to the
// old port is lost by that, and the peer begins again with a small congestion window, so a move must
// not come with each short outage, or because a busy machine is late.
const firstMove = 6

// watch looks for silence on a connection. If nothing answers on a dialled one, not even keep-alive
// packets, a NAT on the way may have dropped us, and another port may work. The time between two
// attempts grows, so that the peer can notice. u is nil for a connection that was accepted, of which
// only the end by silence is watched.
func (c *connection) watch(u *udpSocket) {
	every := c.settings.keepalive / watchesPerKeepalive
	tick := time.NewTicker(every)
	defer tick.Stop()
	var unheard silence
	var heard, sent uint64 // number of packets when something last came
	for silent, limit := 0, firstMove; c.next(tick); {
		s := c.qc.ConnectionStats()
		if unheard.tick(s.PacketsReceived) > ticksOf(patience(c.settings.idle, s), every) {
			c.close(closeSilent, "nothing was heard of the peer")
			return
		}
		if s.PacketsReceived != heard || s.PacketsSent <= sent+1 {
			if s.PacketsReceived != heard {
				heard, sent = s.PacketsReceived, s.PacketsSent
			}
			silent, limit = 0, firstMove
			continue
		}
		silent++
		if u == nil || silent < limit || time.Duration(silent)*every < 4*s.SmoothedRTT {
			continue
		}
		if limit == firstMove {
			log.Printf("[INFO] quic: nothing is heard of %s: trying another port", c.qc.RemoteAddr())
		}
		u.rebind()
		silent, limit = 0, 2*limit
	}
}

func (c *connection) next(tick *time.Ticker) bool {
	select {
	case <-c.qc.Context().Done():
		return false
	case <-tick.C:
		return true
	}
}
