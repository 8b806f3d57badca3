package tcp

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openimpi/impi/plugins/sdk/transports"
)

func ports(t *testing.T, texts ...string) (list []netip.AddrPort) {
	t.Helper()
	for _, s := range texts {
		list = append(list, netip.MustParseAddrPort(s))
	}
	return list
}

func TestFamiliesTakeTurns(t *testing.T) {
	got, _, err := parseAddresses(transports.DialSpec{Address: "[::1]:1,[::2]:2,[::3]:3,1.1.1.1:4"})
	if want := ports(t, "[::1]:1", "1.1.1.1:4", "[::2]:2", "[::3]:3"); err != nil || !slices.Equal(got, want) {
		t.Errorf("the order is %v, %v", got, err)
	}
	for _, bad := range []string{"", ",", "1.1.1.1:1,", "1.1.1.1:0", "1.1.1.1:1,x", strings.Repeat("1.1.1.1:1,", 8) + "1.1.1.1:1"} {
		if _, _, err := parseAddresses(transports.DialSpec{Address: bad}); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestConnectionsInAddresses(t *testing.T) {
	for text, want := range map[string]int{
		"1.1.1.1:1": 1, "1.1.1.1:1,[::1]:2/32": 32, "1.1.1.1:1/2": 2,
		"1.1.1.1:1/": 0, "1.1.1.1:1/1": 0, "1.1.1.1:1/33": 0, "1.1.1.1:1/-2": 0, "1.1.1.1:1/2,1.1.1.1:2": 0, "/2": 0,
	} {
		if _, got, err := parseAddresses(transports.DialSpec{Address: text}); got != want || (err == nil) != (want > 0) {
			t.Errorf("%s: %d connections, %v; want %d", text, got, err, want)
		}
	}
}

var (
	errDead = errors.New("dead")
	errBad  = errors.New("bad")
)

// The next address is tried after the head start of one that is silent, at once after one
// that fails, and never after one that answers.
func TestRace(t *testing.T) {
	silent := func(ctx context.Context) (*net.TCPConn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	answers := func(context.Context) (*net.TCPConn, error) { return &net.TCPConn{}, nil }
	fails := func(err error) func(context.Context) (*net.TCPConn, error) {
		return func(context.Context) (*net.TCPConn, error) { return nil, err }
	}
	for name, c := range map[string]struct {
		peers []func(context.Context) (*net.TCPConn, error)
		took  time.Duration
		tried int
		err   error
	}{
		"First":    {[]func(context.Context) (*net.TCPConn, error){answers, answers}, 0, 1, nil},
		"Silent":   {[]func(context.Context) (*net.TCPConn, error){silent, silent, answers}, 2 * headStart, 3, nil},
		"Failing":  {[]func(context.Context) (*net.TCPConn, error){fails(errDead), fails(errBad), answers}, 0, 3, nil},
		"AllFail":  {[]func(context.Context) (*net.TCPConn, error){fails(errDead), fails(errBad)}, 0, 2, errDead},
		"NoAnswer": {[]func(context.Context) (*net.TCPConn, error){silent, silent}, time.Minute, 2, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				list := ports(t, "1.1.1.1:1", "1.1.1.1:2", "1.1.1.1:3")[:len(c.peers)]
				tried := make(chan int, 3)
				began := time.Now()
				_, err := race(ctx, list, func(ctx context.Context, to netip.AddrPort) (*net.TCPConn, error) {
					tried <- int(to.Port())
					return c.peers[to.Port()-1](ctx)
				})
				if !errors.Is(err, c.err) || time.Since(began) != c.took || len(tried) != c.tried {
					t.Errorf("%v after %v and %d attempts", err, time.Since(began), len(tried))
				}
			})
		})
	}
}

// A listener with addresses of both families is found at each.
func TestBothFamilies(t *testing.T) {
	tr := New()
	given := transports.Defaults(tr.Schema())
	given["also"], given["streams"] = []string{"::1", "127.0.0.9"}, 1.0
	if err := tr.Configure(given); err != nil {
		t.Fatal(err)
	}
	ln, err := tr.Listen(t.Context(), transports.ListenSpec{Host: "127.0.0.8"})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	parts := strings.Split(ln.Address(), ",")
	if len(parts) != 3 || !strings.HasPrefix(parts[1], "[::1]:") {
		t.Fatalf("the address is %s", ln.Address())
	}
	dead := "127.0.0.7:1," // refuses at once
	for _, address := range append(parts, ln.Address(), dead+parts[1]) {
		l, err := tr.Dial(t.Context(), transports.DialSpec{Address: address, From: "127.0.0.3"})
		if strings.HasPrefix(address, "[") {
			if err == nil {
				t.Errorf("%s was reached from IPv4", address)
			}
			continue
		}
		if err != nil {
			t.Errorf("dial %s: %v", address, err)
			continue
		}
		defer l.Close()
		a, err := ln.Accept(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
	}
}

func TestAlsoIsJudged(t *testing.T) {
	for _, list := range [][]string{{"localhost"}, {"::"}, {"0.0.0.0"}, slices.Repeat([]string{"127.0.0.1"}, 8)} {
		var fault *transports.SettingError
		if err := New().Configure(map[string]any{"also": list}); !errors.As(err, &fault) || fault.Name != "also" {
			t.Errorf("%q: %v", list, err)
		}
	}
}
