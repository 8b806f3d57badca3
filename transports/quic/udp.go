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

// quietLibrary turns off the library's warning of small buffers; Health reports them.
const quietLibrary = "QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING"

var warnOnce sync.Once

func (s *settings) bindUDP(at netip.AddrPort) (*net.UDPConn, error) {
	network := "udp6"
	switch {
	case at.Addr().Is4():
		network = "udp4"
	case at.Addr() == netip.IPv6Unspecified():
		network = "udp" // both address families
	}
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		if cerr := c.Control(func(fd uintptr) { err = s.setBuffers(int(fd)) }); cerr != nil {
			return cerr
		}
		return err
	}}
	_ = os.Setenv(quietLibrary, "1") // cannot fail for this name
	pc, err := lc.ListenPacket(context.Background(), network, at.String())
	if err != nil {
		return nil, err
	}
	return pc.(*net.UDPConn), nil
}

func endpoint(udp net.PacketConn) *quic.Transport {
	return &quic.Transport{Conn: udp, ConnectionIDLength: 8}
}

// closeEndpoint closes the endpoint, and its socket, which the library leaves open as it has not
// made it.
func closeEndpoint(e *quic.Transport) {
	_ = e.Close()
	_ = e.Conn.Close()
}

// resetKey is derived from the site's secret, so that peers of an earlier process at the
// same port understand stateless resets of this one: they learn that their connections have
// ended.
func (s *settings) resetKey() *quic.StatelessResetKey {
	key := quic.StatelessResetKey(sha256.Sum256(append([]byte("impi/1 stateless reset "), s.id.Secret()...)))
	return &key
}

// setBuffers makes a UDP socket's buffers large, beyond the system's limit if that is
// allowed.
func (s *settings) setBuffers(fd int) error {
	for _, b := range []struct{ name, force int }{{unix.SO_RCVBUF, unix.SO_RCVBUFFORCE}, {unix.SO_SNDBUF, unix.SO_SNDBUFFORCE}} {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, b.name, s.buffer); err != nil {
			return fmt.Errorf("set a buffer of a UDP socket to %d bytes: %w", s.buffer, err)
		}
		got, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, b.name)
		if err == nil && got/2 < s.buffer { // the kernel reports twice the size
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

// errNobody is the reason to give up a handshake: the peer's machine says that the port is
// closed.
var errNobody = fmt.Errorf("a packet came back: %w", syscall.ECONNREFUSED)

// cancelIfUnreachable cancels a handshake with errNobody if the peer's machine says that the port
// is closed. The kernel does not report that on the library's socket, which is not connected.
func cancelIfUnreachable(ctx context.Context, from netip.Addr, to netip.AddrPort, cancel context.CancelCauseFunc) {
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
	// No QUIC packet begins with 0, so a listener ignores it.
	if _, err = c.Write([]byte{0}); err == nil {
		_, err = c.Read(make([]byte, 1))
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		cancel(errNobody)
	}
}
