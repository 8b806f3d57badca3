package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
)

// dialMany makes connections that stay open until hangUp, and sends b on each.
func dialMany(t *testing.T, n int, addr string, b []byte) (hangUp func()) {
	t.Helper()
	var all []net.Conn
	hangUp = func() {
		for _, nc := range all {
			nc.Close()
		}
	}
	t.Cleanup(hangUp)
	for range n {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, nc)
		if _, err := nc.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	return hangUp
}

// TestIdleConns: connections that send nothing keep no client out, even from the same
// address.
func TestIdleConns(t *testing.T) {
	for _, n := range []int{64, 500} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			srv := serve(t, startup.ServerConfig{Clients: 32})
			hangUp := dialMany(t, n, srv.addr, nil)
			var all []startup.ClientConfig
			for r := range wire.ClientRank(32) {
				all = append(all, client(r))
			}
			for _, s := range mustJoin(t, srv.addr, all...) {
				s.Finish()
			}
			hangUp()
			if err := <-srv.result; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestWrongKeysDoNotEndTheJob: a hundred of them, and then the right one of the same
// address.
func TestWrongKeysDoNotEndTheJob(t *testing.T) {
	auth := startup.Auth{HasKey: true, Key: 5678}
	srv := serve(t, startup.ServerConfig{Clients: 1, Auth: auth})
	wrong, right := client(0), client(0)
	wrong.Auth, right.Auth = startup.Auth{HasKey: true, Key: 5679}, auth
	wantError(t, "wrong key", join(t.Context(), srv.addr, wrong)[0].err, startup.ErrFailed, "authentication failed: wrong key")
	hangUp := dialMany(t, 100, srv.addr, wire.AppendKey(wire.AppendAuth(nil, wire.AuthKey), 1))
	mustJoin(t, srv.addr, right)[0].Finish()
	hangUp()
	if err := <-srv.result; err != nil {
		t.Error(err)
	}
}

// busyDial returns a Dial that connects to a server that is busy.
func busyDial(asked *int) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		*asked++
		here, there := net.Pipe()
		go func() {
			defer there.Close()
			io.ReadFull(there, make([]byte, wire.CommandSize+4)) // AUTH
			there.Write(wire.AppendFail(nil, startup.ErrBusy.Error()+": 64 others are here"))
		}()
		return here, nil
	}
}

// TestBusyServerIsAskedAgain until it has room.
func TestBusyServerIsAskedAgain(t *testing.T) {
	srv := serve(t, startup.ServerConfig{Clients: 1})
	asked := 0
	busy := busyDial(&asked)
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		if asked < 3 {
			return busy(ctx, network, address)
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	s, _, err := Join(t.Context(), Settings{Server: srv.addr, Dial: dial}, client(0))
	if err != nil {
		t.Fatal(err)
	}
	s.Finish()
	if err := <-srv.result; err != nil || asked != 3 {
		t.Errorf("asked a busy server %d times: %v", asked, err)
	}
}

// TestBusyServerIsGivenUp when the limit is over, and not before; or when the client
// is stopped.
func TestBusyServerIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, begin := 0, time.Now()
		cfg := client(0)
		cfg.Limit = time.Minute
		_, _, err := Join(t.Context(), Settings{Server: "server:1", Dial: busyDial(&asked)}, cfg)
		wantError(t, "client", err, startup.ErrBusy, "64 others are here (for 1m0s, which is the limit)")
		if took := time.Since(begin); asked < 60 || took < cfg.Limit-lastBusy || took > cfg.Limit {
			t.Errorf("asked %d times in %v", asked, took)
		}
		stopped := errors.New("stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(10*time.Second, func() { cancel(stopped) })
		_, _, err = Join(ctx, Settings{Server: "server:1", Dial: busyDial(&asked)}, cfg)
		wantError(t, "client", err, stopped, "was stopped")
	})
}
