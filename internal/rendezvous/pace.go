package rendezvous

import (
	"context"
	"net"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

// heeded returns a connection that notices that its peer is silent while data is on its way there.
// The kernel's keep-alive does that only for an idle connection; otherwise the kernel retransmits
// for a quarter of an hour.
func heeded(nc net.Conn) net.Conn {
	if tcp, ok := nc.(*net.TCPConn); ok {
		return socket.Heed(tcp)
	}
	return nc
}

// heeding wraps a dial function so that its connections are heeded.
func heeding(dial func(ctx context.Context, network, address string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		nc, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return heeded(nc), nil
	}
}

// unpaced chooses reno as the congestion control of a connection inside one machine.
// Algorithms that pace packets by an estimate of the path's bandwidth estimate too little
// if the reader is slow; the answers of a large job then take several times as long. If the
// choice fails the connection is only slower.
func unpaced(nc net.Conn) {
	tcp, ok := nc.(syscall.Conn)
	local, ok1 := nc.LocalAddr().(*net.TCPAddr)
	remote, ok2 := nc.RemoteAddr().(*net.TCPAddr)
	if !ok || !ok1 || !ok2 || !remote.IP.IsLoopback() && !remote.IP.Equal(local.IP) {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "reno")
	})
}
