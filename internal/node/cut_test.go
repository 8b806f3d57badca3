package node

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync/atomic"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
	"github.com/openimpi/impi/transports/tcp"
)

// cutting is tcp through a relay in the dialling plugin that resets each
// connection on both sides after about so many bytes, whichever way they go.
type cutting struct {
	transports.Transport
	every    float64
	channels bool
	silent   bool // the dialler is told nothing: its connection stays, and nothing passes

	// The first connections are cut when so many bytes have come from the dialler,
	// or from the other end; 0: they are not.
	asked, answered float64
	first           atomic.Int32 // such connections to come
}

func newCutting() *cutting { return &cutting{Transport: tcp.New()} }

func (c *cutting) Info() transports.Info {
	i := c.Transport.Info()
	i.Name = "cut"
	return i
}

func (c *cutting) Schema() []transports.Setting {
	return []transports.Setting{
		{Name: "every", Type: transports.TypeNumber, Default: 1e6, Doc: "bytes of a connection's life, on average"},
		{Name: "channels", Type: transports.TypeBool, Default: false, Doc: "fit for channels"},
		{Name: "first", Type: transports.TypeNumber, Default: 0.0, Doc: "connections that are cut early"},
		{Name: "asked", Type: transports.TypeNumber, Default: 0.0, Doc: "bytes from the dialler that they live for"},
		{Name: "answered", Type: transports.TypeNumber, Default: 0.0, Doc: "bytes to the dialler that they live for"},
		{Name: "silent", Type: transports.TypeBool, Default: false, Doc: "the dialler's end is not cut"},
	}
}

func (c *cutting) Capabilities() transports.Capabilities {
	x := c.Transport.Capabilities()
	if !c.channels {
		x.Features = nil
	}
	return x
}

func (c *cutting) Configure(s map[string]any) error {
	c.every, c.channels, c.silent = s["every"].(float64), s["channels"].(bool), s["silent"].(bool)
	c.asked, c.answered = s["asked"].(float64), s["answered"].(float64)
	c.first.Store(int32(s["first"].(float64)))
	defaults := make(map[string]any)
	for _, x := range c.Transport.Schema() {
		defaults[x.Name] = x.Default
	}
	defaults["streams"] = 1.0 // a relay is between the ends, which knows one connection
	return c.Transport.Configure(defaults)
}

func (c *cutting) Dial(ctx context.Context, to transports.DialSpec) (link.Link, error) {
	near, mine, err := connected()
	if err != nil {
		return nil, socket.Failure("cut", "dial", to.Address, err)
	}
	from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(to.From)}}
	far, err := from.DialContext(ctx, "tcp", to.Address)
	if err != nil {
		return nil, errors.Join(socket.Failure("cut", "dial", to.Address, err), near.Close(), mine.Close())
	}
	r := &relay{a: mine, b: far.(*net.TCPConn), silent: c.silent}
	r.left.Store(int64(c.every * (0.5 + rand.Float64())))
	asked, answered := 0, 0
	if c.first.Add(-1) >= 0 {
		asked, answered = int(c.asked), int(c.answered)
	}
	go r.pump(r.a, r.b, asked)
	go r.pump(r.b, r.a, answered)
	return socket.FromConn(near)
}

// connected makes a TCP connection within this process.
func connected() (a, b *net.TCPConn, err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	defer ln.Close()
	x, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		return nil, nil, err
	}
	y, err := ln.Accept()
	if err != nil {
		return nil, nil, errors.Join(err, x.Close())
	}
	return x.(*net.TCPConn), y.(*net.TCPConn), nil
}

// relay passes bytes on until its life is over.
type relay struct {
	a, b   *net.TCPConn
	left   atomic.Int64
	silent bool
}

// pump passes one direction on, most bytes of it if that is not 0.
func (r *relay) pump(from, to *net.TCPConn, most int) {
	buf := make([]byte, 64<<10)
	for passed := 0; ; {
		n, err := from.Read(buf)
		if passed += n; most > 0 && passed >= most {
			n -= passed - most
			err = net.ErrClosed
		}
		if left := r.left.Add(-int64(n)); left <= 0 {
			n = max(0, n+int(left)) // some of the bytes arrive
			err = net.ErrClosed
		}
		if _, werr := to.Write(buf[:n]); werr != nil || err != nil {
			for _, c := range []*net.TCPConn{from, to} {
				if c == r.a && r.silent {
					continue // until it ends
				}
				_ = c.SetLinger(0)
				_ = c.Close()
			}
			return
		}
	}
}
