package rendezvous

import (
	"net"

	"golang.org/x/sys/unix"
)

// unpaced chooses reno as the congestion control of a connection inside one machine.
// Algorithms that pace packets by an estimate of the path's bandwidth estimate too little
// if the reader is slow; the answers of a large job then take several times as long. If the
// choice fails the connection is only slower.
func unpaced(nc net.Conn) {
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return
	}
	local, ok := tcp.LocalAddr().(*net.TCPAddr)
	remote, ok2 := tcp.RemoteAddr().(*net.TCPAddr)
	if !ok || !ok2 || !remote.IP.IsLoopback() && !remote.IP.Equal(local.IP) {
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
