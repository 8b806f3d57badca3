package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

func configured(t testing.TB, given map[string]any) *transport {
	t.Helper()
	x := newTransport()
	all := transports.Defaults(x.Schema())
	for k, v := range given {
		all[k] = v
	}
	if err := x.Configure(all); err != nil {
		t.Fatal(err)
	}
	return x
}

var here = transports.ListenSpec{Host: "127.0.0.1"}

func TestContract(t *testing.T) {
	transporttest.Run(t, func(t *testing.T) transporttest.Harness {
		return transporttest.Harness{Transport: configured(t, nil), Dialler: configured(t, nil), Listen: here}
	})
}

// The whole contract again, through an HTTP proxy.
func TestContractThroughProxy(t *testing.T) {
	p := newProxy(t, "")
	transporttest.Run(t, func(t *testing.T) transporttest.Harness {
		return transporttest.Harness{
			Transport: configured(t, nil), Dialler: configured(t, map[string]any{"proxy": p.url}), Listen: here,
			Large: 8 << 20, Links: 100,
		}
	})
	if p.tunnels.Load() < 100 {
		t.Errorf("only %d connections went through the proxy", p.tunnels.Load())
	}
}

// proxy is a tiny HTTP proxy that does CONNECT.
type proxy struct {
	url     string
	want    string // Proxy-Authorization
	tunnels atomic.Int64
}

func newProxy(t testing.TB, want string) *proxy {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{url: "http://" + ln.Addr().String(), want: want}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go p.serve(c.(*net.TCPConn))
		}
	}()
	t.Cleanup(func() { ln.Close() })
	return p
}

func (p *proxy) serve(c *net.TCPConn) {
	defer c.Close()
	req, err := http.ReadRequest(bufio.NewReader(c))
	switch {
	case err != nil:
	case req.Method != http.MethodConnect:
		fmt.Fprint(c, "HTTP/1.1 405 Method Not Allowed\r\n\r\n")
	case req.Header.Get("Proxy-Authorization") != p.want:
		fmt.Fprint(c, "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
	default:
		far, err := net.Dial("tcp", req.Host)
		if err != nil {
			fmt.Fprint(c, "HTTP/1.1 502 Bad Gateway\r\n\r\n")
			return
		}
		defer far.Close()
		p.tunnels.Add(1)
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\n\r\n")
		go func() {
			_, _ = io.Copy(far, c)
			_ = far.(*net.TCPConn).CloseWrite()
		}()
		_, _ = io.Copy(c, far)
	}
}

func dialFrom(t testing.TB, x *transport, address string) (link.Link, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	l, err := x.Dial(ctx, transports.DialSpec{Address: address})
	if err == nil {
		t.Cleanup(func() { l.Close() })
	}
	return l, err
}

func TestWhyADialFails(t *testing.T) {
	ln, err := configured(t, map[string]any{"token": "sesame"}).Listen(t.Context(), here)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	other, err := configured(t, nil).Listen(t.Context(), here)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	guarded := newProxy(t, "Basic dTpw")
	nobody := strings.Replace(newProxy(t, "").url, "127.0.0.1", "127.0.0.77", 1)
	for what, c := range map[string]struct {
		set     map[string]any
		address string
		code    transports.Code // "" if there is to be a link
	}{
		"the right token":          {map[string]any{"token": "sesame"}, ln.Address(), ""},
		"another token":            {map[string]any{"token": "barley"}, ln.Address(), transports.CodeAuth},
		"no token":                 {nil, ln.Address(), transports.CodeAuth},
		"another path":             {nil, other.Address() + "x", transports.CodeRefused},
		"a guarded proxy":          {map[string]any{"proxy": guarded.url}, other.Address(), transports.CodeAuth},
		"with the proxy's word":    {map[string]any{"proxy": strings.Replace(guarded.url, "//", "//u:p@", 1)}, other.Address(), ""},
		"a proxy without the peer": {map[string]any{"proxy": newProxy(t, "").url}, "ws://127.0.0.1:1/impi", transports.CodeRefused},
		"no such proxy":            {map[string]any{"proxy": nobody}, other.Address(), transports.CodeUnreachable},
		"a name":                   {nil, "ws://localhost:1/impi", transports.CodeAddress},
		"a name that is allowed":   {map[string]any{"names": true}, "ws://localhost:1/impi", transports.CodeRefused},
		"http":                     {nil, "http://127.0.0.1:1/impi", transports.CodeAddress},
		"a long address":           {nil, "ws://127.0.0.1:1/" + strings.Repeat("x", 1000), transports.CodeAddress},
	} {
		t.Run(what, func(t *testing.T) {
			_, err := dialFrom(t, configured(t, c.set), c.address)
			var te *transports.Error
			switch {
			case c.code == "" && err != nil:
				t.Error(err)
			case c.code != "" && (!errors.As(err, &te) || te.Code != c.code || te.Reason == ""):
				t.Errorf("%v, want %s", err, c.code)
			}
		})
	}
}

func TestAdvertisedAddress(t *testing.T) {
	ln, err := configured(t, map[string]any{"advertise": "wss://203.0.113.1/gate"}).Listen(t.Context(), here)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if ln.Address() != "wss://203.0.113.1/gate" {
		t.Errorf("%s", ln.Address())
	}
}

func TestSettingsAreJudged(t *testing.T) {
	x := newTransport()
	bad := transports.Defaults(x.Schema())
	for k, v := range map[string]any{"path": "impi?", "proxy": "socks5://x", "advertise": "http://x", "token": "a\nb", "timeout": 0.0} {
		bad[k] = v
	}
	err := x.Configure(bad)
	for _, name := range []string{"path", "proxy", "advertise", "token", "timeout"} {
		if err == nil || !strings.Contains(err.Error(), name+": ") {
			t.Errorf("%s is not blamed: %v", name, err)
		}
	}
	if x.settings().path != "/impi" {
		t.Errorf("faulty settings were taken: %+v", x.settings())
	}
}
