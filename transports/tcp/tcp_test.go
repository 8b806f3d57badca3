package tcp_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/internal/loopback"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
	"github.com/openimpi/impi/transports/tcp"
)

func configured(t *testing.T, settings map[string]any) *tcp.Transport {
	t.Helper()
	tr := tcp.New()
	if err := tr.Configure(settings); err != nil {
		t.Fatal(err)
	}
	return tr
}

func listen(t *testing.T, tr *tcp.Transport, at transports.ListenSpec) transports.Listener {
	t.Helper()
	ln, err := tr.Listen(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln
}

// pair is a link's two ends as sockets, from addresses that the caller chooses.
func pair(t *testing.T, tr *tcp.Transport, host, from string) (dialled, accepted *socket.Link) {
	t.Helper()
	ln := listen(t, tr, transports.ListenSpec{Host: host})
	a, err := tr.Dial(t.Context(), transports.DialSpec{Address: ln.Address(), From: from})
	if err != nil {
		t.Fatal(err)
	}
	b, err := ln.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a.(*socket.Link), b.(*socket.Link)
}

func option(t *testing.T, l link.Link, level, name int) int {
	t.Helper()
	v, err := unix.GetsockoptInt(l.Handle(), level, name)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Peers tell hosts apart by the source address, so it must be the one asked for.
func TestDialFrom(t *testing.T) {
	_, accepted := pair(t, tcp.New(), "127.0.0.2", "127.0.0.9")
	if !strings.HasPrefix(accepted.Peer(), "tcp 127.0.0.9:") {
		t.Errorf("the acceptor sees %s", accepted.Peer())
	}
}

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		settings                map[string]any
		nodelay, alive, seconds int
	}{
		{nil, 1, 1, 10},
		{map[string]any{"nodelay": false, "silence": 0.0}, 0, 0, 0},
		{map[string]any{"silence": 7.0}, 1, 1, 7},
		{map[string]any{"silence": 2.0}, 1, 1, 2},
	} {
		a, b := pair(t, configured(t, c.settings), "127.0.0.1", "")
		for side, l := range map[string]link.Link{"dialled": a, "accepted": b} {
			if v := option(t, l, unix.SOL_TCP, unix.TCP_NODELAY); (v != 0) != (c.nodelay != 0) {
				t.Errorf("%v, %s: TCP_NODELAY is %d", c.settings, side, v)
			}
			if v := option(t, l, unix.SOL_SOCKET, unix.SO_KEEPALIVE); (v != 0) != (c.alive != 0) {
				t.Errorf("%v, %s: SO_KEEPALIVE is %d", c.settings, side, v)
			}
			idle, every, count := option(t, l, unix.SOL_TCP, unix.TCP_KEEPIDLE), option(t, l, unix.SOL_TCP, unix.TCP_KEEPINTVL), option(t, l, unix.SOL_TCP, unix.TCP_KEEPCNT)
			if c.seconds > 0 && idle+every*count != c.seconds {
				t.Errorf("%v, %s: the peer is asked after %d s, and %d times every %d s", c.settings, side, idle, count, every)
			}
			// The timeout would end links to procs that compute.
			if v := option(t, l, unix.SOL_TCP, unix.TCP_USER_TIMEOUT); v != 0 {
				t.Errorf("%v, %s: TCP_USER_TIMEOUT is %d", c.settings, side, v)
			}
		}
	}
}

func TestBuffers(t *testing.T) {
	a, b := pair(t, configured(t, map[string]any{"send_buffer": 50000.0, "receive_buffer": 60000.0}), "127.0.0.1", "")
	for side, l := range map[string]link.Link{"dialled": a, "accepted": b} {
		// The kernel doubles what it is given.
		if v := option(t, l, unix.SOL_SOCKET, unix.SO_SNDBUF); v != 100000 {
			t.Errorf("%s: send buffer %d", side, v)
		}
		if v := option(t, l, unix.SOL_SOCKET, unix.SO_RCVBUF); v != 120000 {
			t.Errorf("%s: receive buffer %d", side, v)
		}
	}
}

func TestBacklogIsWhatTheSystemAllows(t *testing.T) {
	tr := tcp.New()
	ln := listen(t, tr, transports.ListenSpec{Host: "127.0.0.1"})
	// More connections than the historic limits of backlogs allow, none of them accepted.
	for i := range 200 {
		l, err := tr.Dial(t.Context(), transports.DialSpec{Address: ln.Address()})
		if err != nil {
			t.Fatalf("dial %d: %v", i, err)
		}
		defer l.Close()
	}
}

// place is the address of a listener without the number of connections of a link.
func place(ln transports.Listener) string {
	at, _, _ := strings.Cut(ln.Address(), "/")
	return at
}

func TestBindAdvertisesTheHost(t *testing.T) {
	tr := configured(t, map[string]any{"bind": "127.0.0.7", "streams": 1.0})
	ln := listen(t, tr, transports.ListenSpec{Host: "127.0.0.2"})
	at := netip.MustParseAddrPort(place(ln))
	if at.Addr().String() != "127.0.0.2" {
		t.Errorf("the address is %s", at)
	}
	l, err := tr.Dial(t.Context(), transports.DialSpec{Address: fmt.Sprintf("127.0.0.7:%d", at.Port())})
	if err != nil {
		t.Fatalf("dial where it is bound: %v", err)
	}
	l.Close()
	if l, err := tr.Dial(t.Context(), transports.DialSpec{Address: ln.Address()}); err == nil {
		l.Close()
		t.Error("it listens at the advertised address too")
	}
}

func TestIPv6Address(t *testing.T) {
	ln := listen(t, tcp.New(), transports.ListenSpec{Host: "::1"})
	if !strings.HasPrefix(ln.Address(), "[::1]:") {
		t.Errorf("the address is %s", ln.Address())
	}
}

// freePort is a port that is free at an address of our own, and so are the next few.
func freePort(t *testing.T) int {
	t.Helper()
	at, err := loopback.Free()
	if err != nil {
		t.Fatal(err)
	}
	return min(int(at.Port()), 65000)
}

func TestPortRange(t *testing.T) {
	first := freePort(t)
	tr := configured(t, map[string]any{"port_range": fmt.Sprintf("%d - %d", first, first+1)})
	at := transports.ListenSpec{Host: loopback.Address().String()}
	seen := map[string]bool{}
	for range 2 {
		a := place(listen(t, tr, at))
		if port := int(netip.MustParseAddrPort(a).Port()); port != first && port != first+1 || seen[a] {
			t.Errorf("it listens at %s", a)
		}
		seen[a] = true
	}
	var e *transports.Error
	if _, err := tr.Listen(t.Context(), at); !errors.As(err, &e) || e.Code != transports.CodeResource || !e.Retryable ||
		e.Address != fmt.Sprintf("%s:%d-%d", at.Host, first, first+1) || !strings.Contains(e.Reason, "port_range") {
		t.Errorf("with the range used up: %v", err)
	}
	at.Port = freePort(t)
	if a := place(listen(t, tr, at)); a != fmt.Sprintf("%s:%d", at.Host, at.Port) {
		t.Errorf("a given port outside the range: it listens at %s", a)
	}
}

func TestListenErrors(t *testing.T) {
	tr := tcp.New()
	busy := netip.MustParseAddrPort(place(listen(t, tr, transports.ListenSpec{Host: "127.0.0.1"})))
	for _, c := range []struct {
		at   transports.ListenSpec
		code transports.Code
	}{
		{transports.ListenSpec{Host: ""}, transports.CodeAddress},
		{transports.ListenSpec{Host: "localhost"}, transports.CodeAddress},
		{transports.ListenSpec{Host: "127.0.0.1", Port: -1}, transports.CodeAddress},
		{transports.ListenSpec{Host: "127.0.0.1", Port: 65536}, transports.CodeAddress},
		{transports.ListenSpec{Host: "192.0.2.1"}, transports.CodeAddress}, // not ours
		{transports.ListenSpec{Host: "127.0.0.1", Port: int(busy.Port())}, transports.CodeResource},
	} {
		_, err := tr.Listen(t.Context(), c.at)
		var e *transports.Error
		if !errors.As(err, &e) || e.Code != c.code || e.Op != "listen" || e.Transport != "tcp" {
			t.Errorf("%+v: %v, want code %s", c.at, err, c.code)
		}
	}
}

func TestDialErrors(t *testing.T) {
	tr := tcp.New()
	ln := listen(t, tr, transports.ListenSpec{Host: "127.0.0.1"})
	closed := ln.Address()
	ln.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		ctx  context.Context
		to   transports.DialSpec
		code transports.Code
	}{
		{t.Context(), transports.DialSpec{Address: closed}, transports.CodeRefused},
		{ended, transports.DialSpec{Address: closed}, transports.CodeTimeout},
		{t.Context(), transports.DialSpec{Address: "127.0.0.1:0"}, transports.CodeAddress},
		{t.Context(), transports.DialSpec{Address: "localhost:80"}, transports.CodeAddress},
		{t.Context(), transports.DialSpec{Address: closed, From: "nonsense"}, transports.CodeAddress},
		{t.Context(), transports.DialSpec{Address: closed, From: "::1"}, transports.CodeAddress},
		{t.Context(), transports.DialSpec{Address: closed, From: "192.0.2.1"}, transports.CodeAddress}, // not ours
	} {
		_, err := tr.Dial(c.ctx, c.to)
		var e *transports.Error
		if !errors.As(err, &e) || e.Code != c.code || e.Op != "dial" {
			t.Errorf("%+v: %v, want code %s", c.to, err, c.code)
		}
	}
}

func TestConfigureReportsAllFaults(t *testing.T) {
	tr := configured(t, map[string]any{"silence": 8.0})
	err := tr.Configure(map[string]any{
		"nodelay": false, "send_buffer": -1.0, "receive_buffer": 1e12, "silence": 1.0,
		"bind": "localhost", "port_range": "9-8",
	})
	for _, name := range []string{"send_buffer", "receive_buffer", "silence", "bind", "port_range"} {
		if err == nil || !strings.Contains(err.Error(), name+": ") {
			t.Errorf("%s is not among the faults: %v", name, err)
		}
	}
	var fault *transports.SettingError
	if !errors.As(err, &fault) || fault.Remedy == "" {
		t.Errorf("no *SettingError with a remedy: %v", err)
	}
	a, _ := pair(t, tr, "127.0.0.1", "")
	if option(t, a, unix.SOL_TCP, unix.TCP_NODELAY) == 0 || option(t, a, unix.SOL_TCP, unix.TCP_KEEPIDLE) != 5 { // of 8
		t.Error("settings with faults have been taken in part")
	}
}

func TestPortRangeSyntax(t *testing.T) {
	for _, text := range []string{"7", "-", "1-", "-1", "0-5", "5-4", "1-65536", "a-b", "1-2-3"} {
		if err := tcp.New().Configure(map[string]any{"port_range": text}); err == nil {
			t.Errorf("port_range = %q is taken", text)
		}
	}
}
