package sdk

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/proto/handover"
	"github.com/openimpi/impi/plugins/sdk/transports/fabric"
	"github.com/openimpi/impi/plugins/sdk/transports/fabric/fabrictest"
)

// A link of a fabric goes by rdma if the node knows that, and else by ring: nodes of both versions
// of the protocol may or may not.
func TestFabricGoesByWhatTheNodeKnows(t *testing.T) {
	for mode, c := range map[handover.Mode]struct{ modes, reason string }{
		handover.ModeRDMA: {"fd peer-shm rdma ring stream grpc", "which cannot do fd, peer-shm"},
		handover.ModeRing: {"fd peer-shm ring stream grpc", "which cannot do fd, peer-shm"},
	} {
		socks, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		d, err := fabrictest.NewDomain()
		if err != nil {
			t.Fatal(err)
		}
		cache := fabric.NewCache(d, 0)
		far := fabric.New(fabrictest.NewConn(d, socks[1], 1), cache)
		defer far.Close()
		s, _, o := opens(t, fabric.New(fabrictest.NewConn(d, socks[0], 1), cache), strings.Fields(c.modes)...)
		if !strings.Contains(o.GetReason(), c.reason) {
			t.Errorf("%v", o)
		}
		l := received(t, s, mode)
		if n, err := far.Send([][]byte{[]byte("hi")}); n != 2 || err != nil {
			t.Fatal(n, err)
		}
		if got := hear(t, l, 2); got != "hi" {
			t.Errorf("%s: %q", o.GetMode(), got)
		}
		if n, err := l.Send([][]byte{[]byte("back")}); n != 4 || err != nil {
			t.Fatal(n, err)
		}
		if got := hear(t, far, 4); got != "back" {
			t.Errorf("%s: %q", o.GetMode(), got)
		}
	}
}
