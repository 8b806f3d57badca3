package socket_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

func acceptor(t *testing.T) (a *socket.Acceptor, address string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a = socket.NewAcceptor(ln.(*net.TCPListener))
	t.Cleanup(func() { a.Close() })
	return a, ln.Addr().String()
}

// A vendor's transport looks at a peer's address, bounds the peer's greeting, and makes a link of
// the connection, for which the bound does not hold any more.
func TestAcceptConn(t *testing.T) {
	a, address := acceptor(t)
	peer, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	c, err := a.AcceptConn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if c.RemoteAddr().String() != peer.LocalAddr().String() || c.LocalAddr().String() != address {
		t.Errorf("it is from %v to %v", c.RemoteAddr(), c.LocalAddr())
	}
	if err := c.SetDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	greeting := make([]byte, 5)
	if _, err := io.ReadFull(c, greeting); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a peer that says nothing: %v", err)
	}
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := peer.Write([]byte("hellojob")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, greeting); err != nil || string(greeting) != "hello" {
		t.Fatalf("%q, %v", greeting, err)
	}
	if err := c.SetDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	l, err := socket.FromConn(c)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	poll(l.Handle(), unix.POLLIN)
	rest := make([]byte, 3)
	if n, err := l.Recv([][]byte{rest}); n != 3 || err != nil || string(rest) != "job" {
		t.Errorf("%q, %d, %v", rest, n, err)
	}
}

// AcceptConn ends as Accept does.
func TestAcceptConnEnds(t *testing.T) {
	a, address := acceptor(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if c, err := a.AcceptConn(ctx); c != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", c, err)
	}
	peer, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	c, err := a.AcceptConn(t.Context()) // none is lost
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	a.Close()
	if c, err := a.AcceptConn(t.Context()); c != nil || !errors.Is(err, link.ErrClosed) {
		t.Errorf("%v, %v", c, err)
	}
}

// wrapping gives connections that hide their descriptor.
type wrapping struct{ *net.TCPListener }

func (w wrapping) Accept() (net.Conn, error) {
	c, err := w.TCPListener.Accept()
	return struct{ net.Conn }{c}, err
}

// A connection without a descriptor is an error that says so, by either method, and is closed.
func TestAcceptWithoutDescriptor(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a := socket.NewAcceptor(wrapping{ln.(*net.TCPListener)})
	defer a.Close()
	for name, accept := range map[string]func() (any, error){
		"Accept":     func() (any, error) { return a.Accept(t.Context()) },
		"AcceptConn": func() (any, error) { return a.AcceptConn(t.Context()) },
	} {
		peer, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer peer.Close()
		if _, err := accept(); err == nil || !strings.Contains(err.Error(), "no descriptor") {
			t.Errorf("%s: %v", name, err)
		}
		if err := peer.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if n, err := peer.Read(make([]byte, 1)); n != 0 || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s leaves the connection open: %v", name, err)
		}
	}
}
