package socket_test

import (
	"testing"

	"golang.org/x/sys/unix"
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
