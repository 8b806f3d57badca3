package transporttest_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/conn"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

// naive is a transport over bare datagrams: it takes for granted that each comes, once, in order.
type naive struct{ transports.Transport }

func (naive) Info() transports.Info { return transports.Info{Name: "naive"} }

func (naive) Dial(_ context.Context, to transports.DialSpec) (link.Link, error) {
	c, err := net.Dial("udp", to.Address)
	if err != nil {
		return nil, err
	}
	// The first is sent until it has come: the links, not the greeting, are what is tried.
	for range 5 {
		if _, err := c.Write([]byte("hello")); err != nil {
			return nil, err
		}
	}
	return conn.New(&datagrams{UDPConn: c.(*net.UDPConn)}), nil
}

func (naive) Listen(context.Context, transports.ListenSpec) (transports.Listener, error) {
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return &naiveListener{c.(*net.UDPConn)}, nil
}

type naiveListener struct{ *net.UDPConn }

func (l *naiveListener) Address() string { return l.LocalAddr().String() }

func (l *naiveListener) Accept(context.Context) (link.Link, error) {
	_, from, err := l.ReadFrom(make([]byte, 100))
	if err != nil {
		return nil, errors.Join(link.ErrClosed, err)
	}
	return conn.New(&datagrams{UDPConn: l.UDPConn, to: from}), nil
}

// datagrams is a stream of datagrams, whose end is an empty one.
type datagrams struct {
	*net.UDPConn
	to   net.Addr // nil: it is connected
	mu   sync.Mutex
	rest []byte
}

func (d *datagrams) Write(b []byte) (int, error) {
	b = b[:min(len(b), 8000)]
	if d.to != nil {
		return d.WriteTo(b, d.to)
	}
	return d.UDPConn.Write(b)
}

func (d *datagrams) Read(b []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.rest) == 0 {
		buf := make([]byte, 10000)
		n, err := d.UDPConn.Read(buf)
		if err != nil {
			return 0, err
		}
		if string(buf[:n]) != "hello" {
			d.rest = buf[:n]
		}
	}
	n := copy(b, d.rest)
	d.rest = d.rest[n:]
	return n, nil
}

func (d *datagrams) CloseWrite() error { return nil }

// A transport that trusts datagrams is found by the lossy path, and by no other rule of order.
func TestLossIsFound(t *testing.T) {
	h := transporttest.Harness{Transport: naive{}, Listen: transports.ListenSpec{Host: "127.0.0.1"}, Patience: 500 * time.Millisecond}
	if why := outcome(t, "byte-by-byte", h); why != "" {
		t.Errorf("without loss: %s", why)
	}
	if why := outcome(t, "lossy-path", h); !strings.Contains(why, "T-LOSS-01: ") {
		t.Errorf("lossy-path has not noticed: %q", why)
	}
}
