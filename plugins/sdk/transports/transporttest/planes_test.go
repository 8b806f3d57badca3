package transporttest_test

import (
	"context"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/conn"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

// dials is the transport of the example with other planes, and with a fault in the links of Dial.
type dials struct {
	plain
	listed []transports.DataPlane // nil: those of the example
	fault  func(t *testing.T, l link.Link) link.Link
	t      *testing.T
}

func (d dials) Capabilities() transports.Capabilities {
	c := d.plain.Capabilities()
	if d.listed != nil {
		c.DataPlanes = d.listed
	}
	return c
}

func (d dials) Dial(ctx context.Context, to transports.DialSpec) (link.Link, error) {
	l, err := d.plain.Dial(ctx, to)
	if err != nil || d.fault == nil {
		return l, err
	}
	return d.fault(d.t, l), nil
}

// another is a socket whose Detach gives another descriptor than its own.
type another struct {
	transports.Socket
	of func(fd int) int
}

func (a another) Detach() (int, []byte, error) {
	fd, preread, err := a.Socket.Detach()
	if err == nil {
		fd = a.of(fd)
	}
	return fd, preread, err
}

func detaching(of func(t *testing.T, fd int) int) func(*testing.T, link.Link) link.Link {
	return func(t *testing.T, l link.Link) link.Link {
		return another{l.(transports.Socket), func(fd int) int { return of(t, fd) }}
	}
}

// inside makes of a socket a connection in the process.
func inside(t *testing.T, l link.Link) link.Link {
	fd, _, err := l.(transports.Socket).Detach()
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "link")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		t.Fatal(err)
	}
	return conn.New(c.(transports.Conn))
}

// A transport whose links are not what it says of their planes is found, whatever it says.
func TestPlaneFaultsAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		listed []transports.DataPlane
		fault  func(*testing.T, link.Link) link.Link
		words  string // empty: nothing is wrong
	}{
		"sound":             {nil, nil, ""},
		"sound and several": {[]transports.DataPlane{transports.PlaneRing, transports.PlaneFD}, inside, ""},
		"fd is not listed":  {[]transports.DataPlane{transports.PlaneRing}, nil, "Dial gives a kernel socket (transports.Socket), which can leave by fd; Capabilities lists ring"},
		"fd is listed only": {nil, inside, "Dial gives a connection inside the process (transports.Piped), which can leave by ring, stream, grpc; Capabilities lists fd"},
		"no kind of link":   {nil, func(_ *testing.T, l link.Link) link.Link { return struct{ link.Link }{l} }, "has the Detach of neither"},
		"closed": {nil, detaching(func(_ *testing.T, fd int) int {
			unix.Close(fd)
			return fd
		}), "bad file descriptor"},
		"no socket": {nil, detaching(func(t *testing.T, fd int) int {
			unix.Close(fd)
			null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			return null
		}), "is no socket"},
		"another's": {nil, detaching(func(t *testing.T, fd int) int {
			pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { unix.Close(fd); unix.Close(pair[1]) })
			return pair[0]
		}), "not the two ends of one link"},
	} {
		t.Run(name, func(t *testing.T) {
			tr := dials{plain{}, c.listed, c.fault, t}
			planesAre(t, transporttest.Harness{Transport: plain{}, Dialler: tr}, c.words)
			if c.fault == nil { // what Accept gives is as wrong
				planesAre(t, transporttest.Harness{Transport: tr, Dialler: plain{}}, strings.Replace(c.words, "Dial", "Accept", 1))
			}
		})
	}
}

// A copy of a descriptor that stays behind is found: at the end of Accept, too.
func TestCopyOfADescriptorIsFound(t *testing.T) {
	l := listens{plain{}, detaching(func(t *testing.T, fd int) int {
		dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(dup) })
		return fd
	}), t}
	planesAre(t, transporttest.Harness{Transport: l}, "a copy of the descriptor is open")
}

// listens is the transport of the example with a fault in the links of Accept.
type listens struct {
	plain
	fault func(t *testing.T, l link.Link) link.Link
	t     *testing.T
}

func (l listens) Listen(ctx context.Context, at transports.ListenSpec) (transports.Listener, error) {
	ln, err := l.plain.Listen(ctx, at)
	return accepts{ln, l}, err
}

type accepts struct {
	transports.Listener
	of listens
}

func (a accepts) Accept(ctx context.Context) (link.Link, error) {
	l, err := a.Listener.Accept(ctx)
	if err != nil {
		return nil, err
	}
	return a.of.fault(a.of.t, l), nil
}

// planesAre runs T-ABOUT-06, which finds the fault with these words, or none.
func planesAre(t *testing.T, h transporttest.Harness, words string) {
	t.Helper()
	h.Listen = transports.ListenSpec{Host: "127.0.0.1"}
	h.Patience = 10 * time.Second
	if words != "" {
		h.Patience = time.Second
	}
	why := outcome(t, "planes", h)
	if (why == "") != (words == "") || !strings.Contains(why, words) {
		t.Errorf("it is said: %q", why)
	}
}

// Links that do not leave their process have no planes.
func TestPlanesOfLinksForTests(t *testing.T) {
	for _, c := range transporttest.Cases() {
		if c.ID != "T-ABOUT-06" {
			continue
		}
		h := newMemory(func(l link.Link) link.Link { return l })
		if o := c.Check(h, 0); o.Verdict != transporttest.Skip {
			t.Errorf("%+v", o)
		}
		h.InProcess = false
		if o := c.Check(h, 0); o.Verdict != transporttest.Fail || !strings.Contains(o.Reason, "has the Detach of neither") {
			t.Errorf("%+v", o)
		}
	}
}
