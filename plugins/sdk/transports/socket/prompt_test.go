package socket_test

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

// TestAckAtOnce asks the kernel whether it waits for an answer that could carry the
// acknowledgement of what has come.
func TestAckAtOnce(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	var ends [2]*socket.Link
	far, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	near, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []net.Conn{near, far} {
		if ends[i], err = socket.FromConn(c.(*net.TCPConn)); err != nil {
			t.Fatal(err)
		}
		defer ends[i].Close()
	}
	message := [][]byte{make([]byte, 100)}
	round := func() {
		for _, i := range []int{0, 1} { // i sends to the other one
			if n, err := ends[i].Send(message); n != 100 || err != nil {
				t.Fatal(n, err)
			}
			await(t, ends[1-i], unix.POLLIN)
			if n, err := ends[1-i].Recv(message); n != 100 || err != nil {
				t.Fatal(n, err)
			}
		}
	}
	atOnce := func(l link.Link) bool {
		v, err := unix.GetsockoptInt(l.Handle(), unix.IPPROTO_TCP, unix.TCP_QUICKACK)
		if err != nil {
			t.Fatal(err)
		}
		return v != 0
	}
	for range 10 {
		round()
	}
	if atOnce(ends[0]) {
		t.Error("the kernel does not wait although it was not told so: the test shows nothing")
	}
	ends[0].AckAtOnce()
	for range 10 {
		if round(); !atOnce(ends[0]) {
			t.Fatal("the kernel waits with acknowledgements")
		}
	}
}
