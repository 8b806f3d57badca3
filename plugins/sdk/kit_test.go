package sdk

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/proto"
	"github.com/openimpi/impi/plugins/sdk/proto/handover"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

func TestMain(m *testing.M) {
	if os.Getenv("IMPI_TEST_SERVE") != "" {
		fmt.Println("1|7|unix|/run/x|grpc|") // which the node must not take for the handshake
		Serve(Options{Transport: &fake{}})
	}
	goleak.VerifyTestMain(m)
}

// limit is how long a test waits for something before it is called a hang.
const limit = 2 * time.Minute

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return ctx
}

// fake is a transport that does what a test says.
type fake struct {
	transports.Transport
	dial     func(context.Context, transports.DialSpec) (link.Link, error)
	listened transports.ListenSpec
	incoming chan any // link.Link or error
}

func (*fake) Info() transports.Info { return transports.Info{Name: "fake", Version: "3", Vendor: "v"} }

func (*fake) Capabilities() transports.Capabilities {
	return transports.Capabilities{DataPlanes: []transports.DataPlane{transports.PlaneRing, transports.PlaneFD, transports.PlaneStream}}
}

func (f *fake) Dial(ctx context.Context, to transports.DialSpec) (link.Link, error) {
	return f.dial(ctx, to)
}

func (f *fake) Listen(_ context.Context, at transports.ListenSpec) (transports.Listener, error) {
	if at.Name == "refused" {
		return nil, &transports.Error{Code: transports.CodeAddress, Reason: "not here"}
	}
	f.listened = at
	return &fakeListener{f: f, closed: make(chan struct{})}, nil
}

type fakeListener struct {
	f      *fake
	closed chan struct{}
}

func (l *fakeListener) Accept(ctx context.Context) (link.Link, error) {
	select {
	case x := <-l.f.incoming:
		if err, bad := x.(error); bad {
			return nil, err
		}
		return x.(link.Link), nil
	case <-l.closed:
		return nil, link.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *fakeListener) Address() string { return "fake:1" }
func (l *fakeListener) Close() error    { close(l.closed); return nil }

// socketLink returns a link and the other end of its socket.
func socketLink(t *testing.T) (l *socket.Link, far int) {
	t.Helper()
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if l, err = socket.New(p[0], nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(p[1]) })
	return l, p[1]
}

// ended waits for the end of a socket's stream.
func ended(t *testing.T, fd int) {
	t.Helper()
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, int(limit.Milliseconds()))
		if n == 1 {
			break
		}
		if !errors.Is(err, unix.EINTR) {
			t.Fatalf("the link is still open: %v", err)
		}
	}
	if n, err := unix.Read(fd, make([]byte, 1)); n != 0 || err != nil {
		t.Fatalf("read %d, %v", n, err)
	}
}

// served is a server and a client of it.
type served struct {
	*server
	proto.TransportClient
	node *handover.Conn
}

func serve(t *testing.T, f *fake) *served {
	t.Helper()
	node, file, err := handover.Pair()
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Dup(int(file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	file.Close()
	fds, err := handover.Open(fd)
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(Options{Transport: f, Stats: func() map[string]float64 { return map[string]float64{"x": 1} }}, fds)
	g := newGRPC(s, nil)
	pipe := bufconn.Listen(1 << 16)
	var running sync.WaitGroup
	running.Go(func() { g.Serve(pipe) })
	conn, err := grpc.NewClient("passthrough:fake", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return pipe.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		s.close()
		g.Stop()
		running.Wait()
		fds.Close()
		node.Close()
	})
	return &served{server: s, TransportClient: proto.NewTransportClient(conn), node: node}
}

func call(key string) *proto.Call { return &proto.Call{Key: key, TimeoutMs: 30000} }

func TestByHand(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "IMPI_TEST_SERVE=1")
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "is a transport plugin of impi") {
		t.Errorf("%q, %v", out, err)
	}
	cmd = exec.Command(self) // the cookie, but no descriptor channel
	cmd.Env = append(os.Environ(), "IMPI_TEST_SERVE=1", proto.CookieKey+"="+proto.CookieValue)
	out, err = cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "descriptor channel") {
		t.Errorf("%q, %v", out, err)
	}
}
