package failfast

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// failing is a connection whose writes fail from the time on at which broken is set.
type failing struct {
	net.Conn
	broken *atomic.Bool
}

func (f failing) Write(b []byte) (int, error) {
	if f.broken.Load() {
		return 0, &net.OpError{Op: "write", Net: "unix", Err: syscall.ENOMEM}
	}
	return f.Conn.Write(b)
}

// accepting has the connections of a listener fail.
type accepting struct {
	net.Listener
	broken *atomic.Bool
}

func (a accepting) Accept() (net.Conn, error) {
	c, err := a.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return failing{c, a.broken}, nil
}

// TestCallsFail: a call whose request or answer cannot be written fails at once. gRPC by itself
// would have it wait for ever, as it has no limit here.
func TestCallsFail(t *testing.T) {
	for _, end := range []string{"client", "server"} {
		t.Run(end, func(t *testing.T) {
			ln, err := net.Listen("unix", t.TempDir()+"/socket")
			if err != nil {
				t.Fatal(err)
			}
			var client, server atomic.Bool
			s := grpc.NewServer()
			alive := health.NewServer()
			grpc_health_v1.RegisterHealthServer(s, alive)
			go s.Serve(Listener(accepting{ln, &server}))
			defer s.Stop()
			conn, err := grpc.NewClient("passthrough:///test",
				grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry(),
				grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
					c, err := net.Dial("unix", ln.Addr().String())
					if err != nil {
						return nil, err
					}
					return Conn(failing{c, &client}), nil
				}))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			check := func() error {
				_, err := grpc_health_v1.NewHealthClient(conn).Check(t.Context(), new(grpc_health_v1.HealthCheckRequest))
				return err
			}
			if err := check(); err != nil {
				t.Fatal(err)
			}
			client.Store(end == "client")
			server.Store(end == "server")
			if err := check(); status.Code(err) != codes.Unavailable {
				t.Errorf("%v, Unavailable wanted", err)
			}
		})
	}
}

// TestLastWords: what the other end has sent before it closed the connection is read although a
// write has failed.
func TestLastWords(t *testing.T) {
	ln, err := net.Listen("unix", t.TempDir()+"/socket")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	dialled, err := net.Dial("unix", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c := Conn(dialled)
	defer c.Close()
	other, err := Listener(ln).Accept()
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(other, "bye")
	other.Close()
	if _, err := c.Write([]byte("hello")); !errors.Is(err, syscall.EPIPE) {
		t.Fatalf("%v, %v wanted", err, syscall.EPIPE)
	}
	b := make([]byte, 8)
	if n, err := c.Read(b); err != nil || string(b[:n]) != "bye" {
		t.Errorf("%q, %v", b[:n], err)
	}
}
