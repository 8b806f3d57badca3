package rendezvous

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// TestUnpaced: a connection over loopback is not paced, whatever the system does.
func TestUnpaced(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	nc := dialRaw(t, ln.Addr().String())
	defer nc.Close()
	unpaced(nc)
	raw, err := nc.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var name string
	if e := raw.Control(func(fd uintptr) {
		name, err = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	}); e != nil || err != nil || name != "reno" {
		t.Errorf("congestion control %q: %v %v", name, e, err)
	}
}
