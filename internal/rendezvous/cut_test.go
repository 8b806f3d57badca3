package rendezvous

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
)

// script plays a job of one client with real machines and gives all bytes that
// each side sent.
func script(t *testing.T, auth startup.Auth) (fromClient, fromServer []byte) {
	t.Helper()
	srv := serve(t, startup.ServerConfig{Clients: 1, Auth: auth})
	cfg := client(0)
	cfg.Auth = auth
	tap := &tapped{}
	s, _, err := Join(t.Context(), Settings{Server: srv.addr, Dial: tap.dial}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Finish(), <-srv.result); err != nil {
		t.Fatal(err)
	}
	return tap.out, tap.in
}

// TestServerHearsEachPrefix: a client closes after any number of bytes. Before it has named
// its rank another one can take its place; after that the job fails at once.
func TestServerHearsEachPrefix(t *testing.T) {
	auth := startup.Auth{HasKey: true, Key: 7}
	all, _ := script(t, auth)
	named := len(wire.AppendIMPI(wire.AppendKey(wire.AppendAuth(nil, wire.AuthKey), 7), 0))
	for n := range all {
		srv := serve(t, startup.ServerConfig{Clients: 1, Auth: auth})
		nc := dialRaw(t, srv.addr)
		if _, err := nc.Write(all[:n]); err != nil {
			t.Fatal(err)
		}
		_ = nc.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, nc)
		nc.Close()
		if n >= named {
			wantError(t, "server", <-srv.result, startup.ErrLost, "client 0 (127.0.0.1:")
			continue
		}
		cfg := client(0)
		cfg.Auth = auth
		mustJoin(t, srv.addr, cfg)[0].Finish()
		if err := <-srv.result; err != nil {
			t.Errorf("%d bytes of a stranger: %v", n, err)
		}
	}
}

// TestClientHearsEachPrefix: a server closes after any number of bytes.
func TestClientHearsEachPrefix(t *testing.T) {
	_, all := script(t, startup.Auth{None: true})
	for n := range all {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			defer nc.Close()
			_, _ = nc.Write(all[:n])
			_ = nc.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, nc)
		}()
		r := join(t.Context(), ln.Addr().String(), client(0))
		wantError(t, "client", r[0].err, startup.ErrLost, "the server's")
		ln.Close()
		<-done
	}
}

// tapped is a connection that notes what passes.
type tapped struct {
	net.Conn
	in, out []byte
}

func (c *tapped) dial(ctx context.Context, network, address string) (_ net.Conn, err error) {
	c.Conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
	return c, err
}

func (c *tapped) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.in = append(c.in, b[:n]...)
	return n, err
}

func (c *tapped) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.out = append(c.out, b[:n]...)
	return n, err
}
