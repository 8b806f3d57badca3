package loopback

import (
	"net"
	"net/netip"
	"testing"
)

func TestFree(t *testing.T) {
	at, err := Free()
	if err != nil {
		t.Fatal(err)
	}
	if !at.Addr().IsLoopback() || at.Addr() == netip.MustParseAddr("127.0.0.1") || at.Port() == 0 {
		t.Errorf("%v", at)
	}
	l, err := net.Listen("tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if from := netip.MustParseAddrPort(c.LocalAddr().String()).Addr(); from == at.Addr() {
		t.Errorf("who dials %v comes from %v, and could meet itself", at, from)
	}
}
