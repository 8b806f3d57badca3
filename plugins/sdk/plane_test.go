package sdk

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/proto"
	"github.com/openimpi/impi/plugins/sdk/proto/handover"
	"github.com/openimpi/impi/plugins/sdk/proto/pipe"
	"github.com/openimpi/impi/plugins/sdk/support/relay"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/conn"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

// opens dials a link and opens it by the first possible of some modes.
func opens(t *testing.T, l link.Link, modes ...string) (*served, uint64, *proto.OpenDataPlaneResponse) {
	t.Helper()
	s := serve(t, &fake{dial: func(context.Context, transports.DialSpec) (link.Link, error) { return l, nil }})
	d, err := s.TransportClient.Dial(soon(t), &proto.DialRequest{Call: call("dial")})
	if err != nil {
		t.Fatal(err)
	}
	o, err := s.TransportClient.OpenDataPlane(soon(t), &proto.OpenDataPlaneRequest{
		Call: call("open"), LinkId: d.GetLinkId(), Modes: modes, RingLayouts: []uint32{9, 1}, WakeMethods: []string{"socket"}, RingBytes: 1 << 20,
	})
	if err != nil || o.GetError() != nil {
		t.Fatal(o, err)
	}
	return s, d.GetLinkId(), o
}

// received makes the node's link of the record that has come.
func received(t *testing.T, s *served, mode handover.Mode) link.Link {
	t.Helper()
	r, err := s.node.Receive()
	want := 2
	if mode == handover.ModeRDMA {
		want = 3
	}
	if err != nil || r.Mode != mode || len(r.FDs) != want {
		t.Fatalf("%+v, %v", r, err)
	}
	var l link.Link
	switch mode {
	case handover.ModeRing:
		l, err = relay.NewRing(r.FDs[0], r.FDs[1], int(r.Side), "fake")
	case handover.ModeRDMA:
		l, err = relay.NewRDMA(r.FDs[0], r.FDs[1], r.FDs[2], "fake", nil)
	default:
		l, err = relay.NewStream(r.FDs[0], r.FDs[1], transports.PlaneStream, "fake")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// hear receives exactly so many bytes.
func hear(t *testing.T, l link.Link, n int) string {
	t.Helper()
	b := make([]byte, n)
	for rest := b; len(rest) > 0; {
		k, err := l.Recv([][]byte{rest})
		if err != nil {
			t.Fatal(err)
		}
		if rest = rest[k:]; k == 0 && !l.Arm(link.Readable) {
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(l.Handle()), Events: unix.POLLIN}}, int(limit.Milliseconds()))
		}
	}
	return string(b)
}

// A socket is passed on by whatever the node wants, bytes that were read ahead first.
func TestSocketIsPassedOn(t *testing.T) {
	for mode, n := range map[string]handover.Mode{"ring": handover.ModeRing, "stream": handover.ModeStream} {
		t.Run(mode, func(t *testing.T) {
			p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(p[1])
			x, err := socket.New(p[0], []byte("early "))
			if err != nil {
				t.Fatal(err)
			}
			s, _, o := opens(t, x, mode)
			if o.GetMode() != mode || (mode == "ring") != (o.GetRingLayout() == 1 && o.GetWakeMethod() == "socket" && o.GetRingBytes() == 1<<20) {
				t.Errorf("%v", o)
			}
			l := received(t, s, n)
			if _, err := unix.Write(p[1], []byte("late")); err != nil {
				t.Fatal(err)
			}
			if got := hear(t, l, 10); got != "early late" {
				t.Errorf("%q", got)
			}
			if _, err := l.Send([][]byte{[]byte("back")}); err != nil {
				t.Fatal(err)
			}
			_ = l.CloseSend()
			b := make([]byte, 5)
			if n, err := io.ReadFull(fdReader(p[1]), b); n != 4 || string(b[:4]) != "back" {
				t.Errorf("%q, %v", b, err)
			}
			st, err := s.TransportClient.Stats(soon(t), &proto.StatsRequest{Call: call("stats")})
			if err != nil || st.GetPumped() != 1 || st.GetHandedOver() != 0 || st.GetWaiting() != 0 {
				t.Errorf("%v, %v", st, err)
			}
		})
	}
}

// fdReader reads a blocking descriptor.
type fdReader int

func (r fdReader) Read(b []byte) (int, error) {
	n, err := unix.Read(int(r), b)
	if n == 0 && err == nil {
		err = io.EOF
	}
	return max(n, 0), err
}

// A connection goes by the best plane that it has, and the reason says why not by a
// better one.
func TestConnectionGetsARing(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	s, _, o := opens(t, conn.New(conn.Framed(near)), "fd", "peer-shm", "ring", "stream", "grpc")
	if o.GetMode() != "ring" || o.GetReason() != "the link is a connection inside the plugin, which cannot do fd, peer-shm" {
		t.Errorf("%v", o)
	}
	l := received(t, s, handover.ModeRing)
	go func() { _, _ = far.Write([]byte("\x00\x00\x00\x02hi")) }()
	if got := hear(t, l, 2); got != "hi" {
		t.Errorf("%q", got)
	}
}

// polled is a connection that fails if it is read or written by calls that wait.
type polled struct {
	*socket.Link
	net.Conn
}

func (p polled) Read([]byte) (int, error)  { return 0, net.ErrClosed }
func (p polled) Write([]byte) (int, error) { return 0, net.ErrClosed }
func (p polled) Close() error              { return errors.Join(p.Link.Close(), p.Conn.Close()) }
func (p polled) CloseWrite() error         { return net.ErrClosed }

// A connection of a vendor's that can be polled is polled.
func TestConnectionIsPolled(t *testing.T) {
	x, far := socketLink(t)
	unused, _ := net.Pipe()
	s, _, _ := opens(t, conn.New(polled{x, unused}), "ring")
	l := received(t, s, handover.ModeRing)
	if _, err := unix.Write(far, []byte("hi")); err != nil {
		t.Fatal(err)
	}
	if got := hear(t, l, 2); got != "hi" {
		t.Errorf("%q", got)
	}
	if n, err := l.Send([][]byte{[]byte("back")}); n != 4 || err != nil {
		t.Fatal(n, err)
	}
	b := make([]byte, 4)
	if _, err := io.ReadFull(fdReader(far), b); err != nil || string(b) != "back" {
		t.Errorf("%q, %v", b, err)
	}
}

func TestPipe(t *testing.T) {
	l, far := socketLink(t)
	s, id, o := opens(t, l, "grpc")
	if o.GetMode() != "grpc" {
		t.Fatal(o)
	}
	if st, _ := s.TransportClient.Stats(soon(t), &proto.StatsRequest{Call: call("s")}); st.GetWaiting() != 1 {
		t.Errorf("%v: it should wait for Pipe", st)
	}
	c, err := pipe.Open(soon(t), s.TransportClient, id)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Break()
	if _, err := c.Write([]byte("there")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 5)
	if _, err := io.ReadFull(fdReader(far), b); err != nil || string(b) != "there" {
		t.Fatalf("%q, %v", b, err)
	}
	_, _ = unix.Write(far, []byte("back"))
	if _, err := io.ReadFull(c, b[:4]); err != nil || string(b[:4]) != "back" {
		t.Fatalf("%q, %v", b, err)
	}
	_ = unix.Shutdown(far, unix.SHUT_WR)
	if n, err := c.Read(b); n != 0 || err != io.EOF {
		t.Errorf("the peer has ended: %d, %v", n, err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if n, err := (fdReader(far)).Read(b); n != 0 || err != io.EOF {
		t.Errorf("we have ended: %d, %v", n, err)
	}
	_ = c.Close()
	c.Finish()
	if _, err := pipe.Open(soon(t), s.TransportClient, id); err != nil {
		t.Error(err) // it fails when it is read
	}
}

// A link whose connection breaks ends the call with a status.
func TestPipeBreaks(t *testing.T) {
	near, far := net.Pipe()
	s, id, _ := opens(t, conn.New(conn.Framed(near)), "grpc")
	c, err := pipe.Open(soon(t), s.TransportClient, id)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Break()
	far.Close()
	if _, err := c.Read(make([]byte, 1)); status.Code(err) != codes.Aborted || !strings.Contains(err.Error(), "unexpected EOF") {
		t.Errorf("%v", err)
	}
}

func TestPipeOfNoLink(t *testing.T) {
	l, far := socketLink(t)
	s := serve(t, &fake{dial: func(context.Context, transports.DialSpec) (link.Link, error) { return l, nil }})
	d, err := s.TransportClient.Dial(soon(t), &proto.DialRequest{Call: call("dial")})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []uint64{d.GetLinkId(), 77} { // one is not opened, one is none
		c, err := pipe.Open(soon(t), s.TransportClient, id)
		if err == nil {
			_, err = c.Read(make([]byte, 1))
			c.Break()
		}
		if status.Code(err) != codes.NotFound {
			t.Errorf("link %d: %v", id, err)
		}
	}
	if _, err := s.TransportClient.CloseLink(soon(t), &proto.CloseLinkRequest{Call: call("close"), LinkId: d.GetLinkId()}); err != nil {
		t.Fatal(err)
	}
	ended(t, far)
}

// A link that was opened for Pipe is opened, and can be closed.
func TestPipeWaits(t *testing.T) {
	l, far := socketLink(t)
	s, id, _ := opens(t, l, "grpc")
	o, err := s.TransportClient.OpenDataPlane(soon(t), &proto.OpenDataPlaneRequest{Call: call("again"), LinkId: id, Modes: []string{"fd"}})
	if err != nil || o.GetError() == nil {
		t.Errorf("it was opened twice: %v, %v", o, err)
	}
	if _, err := s.TransportClient.CloseLink(soon(t), &proto.CloseLinkRequest{Call: call("close"), LinkId: id}); err != nil {
		t.Fatal(err)
	}
	ended(t, far)
}

// A link that was opened for Pipe outlives its listener, as one that was handed over does.
func TestPipeOutlivesListener(t *testing.T) {
	l, far := socketLink(t)
	f := &fake{incoming: make(chan any, 1)}
	f.incoming <- l
	s := serve(t, f)
	listener := s.listen(t, "l")
	id := s.eventsAfter(t, 0)().GetAccepted().GetLinkId()
	if o, err := s.TransportClient.OpenDataPlane(soon(t), &proto.OpenDataPlaneRequest{Call: call("open"), LinkId: id, Modes: []string{"grpc"}}); err != nil || o.GetError() != nil {
		t.Fatal(o, err)
	}
	if _, err := s.TransportClient.StopListen(soon(t), &proto.StopListenRequest{Call: call("stop"), ListenerId: listener}); err != nil {
		t.Fatal(err)
	}
	c, err := pipe.Open(soon(t), s.TransportClient, id)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Break()
	_, _ = unix.Write(far, []byte("here"))
	b := make([]byte, 4)
	if _, err := io.ReadFull(c, b); err != nil || string(b) != "here" {
		t.Errorf("%q, %v", b, err)
	}
}

func TestExtended(t *testing.T) {
	for _, c := range [][2]string{
		{"fd", "fd ring stream grpc"}, {"peer-shm", "peer-shm"}, {"stream", "stream ring grpc"},
		{"ring fd", "ring fd stream grpc"}, {"", ""}, {"peer-shm fd", "peer-shm fd ring stream grpc"},
		{"rdma ring", "rdma ring"}, {"rdma", "rdma"}, {"fd rdma", "fd rdma ring stream grpc"}, {"rdma ring stream", "rdma ring stream grpc"},
	} {
		var in []transports.DataPlane
		for _, w := range strings.Fields(c[0]) {
			in = append(in, transports.DataPlane(w))
		}
		var out []string
		for _, p := range Extended(in) {
			out = append(out, string(p))
		}
		if !slices.Equal(out, strings.Fields(c[1])) {
			t.Errorf("%s becomes %v, want %s", c[0], out, c[1])
		}
	}
}

func TestRingBytes(t *testing.T) {
	for asked, made := range map[uint64]uint64{
		0: 512 << 10, 1: 64 << 10, 100 << 10: 64 << 10, 1 << 20: 1 << 20, 1<<20 + 1: 1 << 20, 1 << 63: 16 << 20,
	} {
		if got := ringBytes(asked); got != made {
			t.Errorf("%d asked, %d made, want %d", asked, got, made)
		}
	}
}
