package quic

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"

	"github.com/quic-go/quic-go"
	"golang.org/x/sys/unix"
)

// quietLibrary tells the library to leave it to us to warn of small buffers.
const quietLibrary = "QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING"

var warnOnce sync.Once

// bindUDP makes a UDP socket.
func (s *settings) bindUDP(at netip.AddrPort) (*net.UDPConn, error) {
	network := "udp6"
	switch {
	case at.Addr().Is4():
		network = "udp4"
	case at.Addr() == netip.IPv6Unspecified():
		network = "udp" // both families
	}
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		if cerr := c.Control(func(fd uintptr) { err = s.setBuffers(int(fd)) }); cerr != nil {
			return cerr
		}
		return err
	}}
	_ = os.Setenv(quietLibrary, "1") // fails for names that cannot be
	pc, err := lc.ListenPacket(context.Background(), network, at.String())
	if err != nil {
		return nil, err
	}
	return pc.(*net.UDPConn), nil
}

// endpoint is the library's idea of a UDP socket.
func endpoint(udp net.PacketConn) *quic.Transport {
	return &quic.Transport{Conn: udp, ConnectionIDLength: 8}
}

// closeEndpoint closes the socket too.
func closeEndpoint(e *quic.Transport) {
	_ = e.Close()
	_ = e.Conn.Close()
}

// resetKey makes stateless resets of a later process understood by peers of an
// earlier one at the same port: it tells them that their connections are no more.
func (s *settings) resetKey() *quic.StatelessResetKey {
	key := quic.StatelessResetKey(sha256.Sum256(append([]byte("impi/1 stateless reset "), s.id.Secret()...)))
	return &key
}

// setBuffers makes a UDP socket's buffers large, by force where that is allowed.
func (s *settings) setBuffers(fd int) error {
	for _, b := range []struct{ name, force int }{{unix.SO_RCVBUF, unix.SO_RCVBUFFORCE}, {unix.SO_SNDBUF, unix.SO_SNDBUFFORCE}} {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, b.name, s.buffer); err != nil {
			return fmt.Errorf("set a buffer of a UDP socket to %d bytes: %w", s.buffer, err)
		}
		got, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, b.name)
		if err == nil && got/2 < s.buffer { // the kernel reports twice of it
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, b.force, s.buffer)
			got, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, b.name)
		}
		if err == nil && got/2 < s.buffer {
			granted.Store(int64(got / 2))
			warnOnce.Do(func() { log.Printf("[WARN] quic: %v", tooSmall(int64(got/2), s.buffer)) })
		}
	}
	return nil
}

// errNobody is why a handshake was given up: the peer's machine says that the port
// is closed.
var errNobody = fmt.Errorf("a packet came back: %w", syscall.ECONNREFUSED)

// knock cancels a handshake with errNobody when the peer's machine says that nobody
// listens there. A socket that is not connected, like the library's, is not told.
func knock(ctx context.Context, from netip.Addr, to netip.AddrPort, cancel context.CancelCauseFunc) {
	d := net.Dialer{}
	if from.IsValid() {
		d.LocalAddr = net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, 0))
	}
	c, err := d.DialContext(ctx, "udp", to.String())
	if err != nil {
		return
	}
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer func() {
		stop()
		c.Close()
	}()
	// No QUIC packet begins with 0: who listens ignores it.
	if _, err = c.Write([]byte{0}); err == nil {
		_, err = c.Read(make([]byte, 1))
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		cancel(errNobody)
	}
}
