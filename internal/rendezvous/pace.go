package rendezvous

import (
	"net"

	"golang.org/x/sys/unix"
)

// unpaced lets a connection inside one machine send as fast as the other side
// reads. Many systems pace connections by what they think the way is good for, and
// think little of it where readers are slow to come: the answers of a large job
// then take several times as long. Where it is not possible nothing is lost but time.
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
