package socket_test

import (
	"net"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

func TestCounts(t *testing.T) {
	for _, c := range []struct {
		name string
		rtt  bool
	}{{"tcp", true}, {"unix", false}} {
		pair := tcpPair
		if c.name == "unix" {
			pair = unixPair
		}
		a, b := pair(t)
		if n, err := a.Send([][]byte{make([]byte, 100), make([]byte, 23)}); n != 123 || err != nil {
			t.Fatal(n, err)
		}
		await(t, b, unix.POLLIN)
		if n, err := b.Recv([][]byte{make([]byte, 50)}); n != 50 || err != nil {
			t.Fatal(n, err)
		}
		if sent, received := a.Counts(); sent != 123 || received != 0 {
			t.Errorf("%s: the sender counts %d and %d", c.name, sent, received)
		}
		if sent, received := b.Counts(); sent != 0 || received != 50 {
			t.Errorf("%s: the receiver counts %d and %d", c.name, sent, received)
		}
		if rtt, ok := a.RTT(); ok != c.rtt || (rtt > 0) != c.rtt {
			t.Errorf("%s: round trip %v, %v", c.name, rtt, ok)
		}
		_ = a.Close()
		if _, ok := a.RTT(); ok {
			t.Errorf("%s: a closed link has a round trip", c.name)
		}
	}
}

// TestRetransmits: what links had to send again is counted while they are open, and afterwards.
func TestRetransmits(t *testing.T) {
	var r socket.Retransmits
	again := func(name string) (l *socket.Link) {
		l, deaf := deafPair(t)
		r.Count(l, name)
		r.Count(l, "twice")
		before := r.Totals()[name]
		if _, err := l.Send([][]byte{make([]byte, 100)}); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(time.Minute); r.Totals()[name] == before; runtime.Gosched() {
			if time.Now().After(end) {
				t.Fatal("nothing is sent again to a peer that drops all")
			}
		}
		if err := unix.SetsockoptInt(deaf, unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0); err != nil {
			t.Fatal(err)
		}
		return l
	}
	first := again("tcp")
	had := r.Totals()["tcp"]
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if now := r.Totals()["tcp"]; now < had {
		t.Errorf("%d after Close, %d before", now, had)
	}
	had = r.Totals()["tcp"]
	second := again("tcp")
	now := r.Totals()
	if now["tcp"] <= had || len(now) != 1 {
		t.Errorf("%v after a second link, %d before", now, had)
	}
	fd, _, err := second.Detach()
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(fd)
	if after := r.Totals()["tcp"]; after < now["tcp"] {
		t.Errorf("%d after Detach, %d before", after, now["tcp"])
	}
}

// deafPair is a link of TCP and its peer's socket, which drops all that comes.
func deafPair(t *testing.T) (*socket.Link, int) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	fds := make([]int, 2)
	for i, open := range []func() (net.Conn, error){func() (net.Conn, error) { return net.Dial("tcp", ln.Addr().String()) }, ln.Accept} {
		c, err := open()
		if err != nil {
			t.Fatal(err)
		}
		f, err := c.(*net.TCPConn).File()
		if err != nil {
			t.Fatal(err)
		}
		if fds[i], err = unix.Dup(int(f.Fd())); err != nil {
			t.Fatal(err)
		}
		_, _ = f.Close(), c.Close()
	}
	t.Cleanup(func() { unix.Close(fds[1]) })
	drop := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K}
	if err := unix.SetsockoptSockFprog(fds[1], unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &drop}); err != nil {
		t.Fatal(err)
	}
	l, err := socket.New(fds[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, fds[1]
}
