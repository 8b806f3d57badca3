package door

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/core/unproved"
	"github.com/openimpi/impi/transports/socket"
)

// Bounds of connections that have not shown their key.
const (
	GreetLimit = 10 * time.Second // for showing it
	MaxUnknown = 256              // of them in all
	maxThere   = 64               // at one address
	warnings   = time.Second      // at least between two about wrong keys
)

// Enter is a client's side: it makes nc a safe connection to a server that has the same key.
// Nothing is read of the connection that comes after that. It blocks until then, or until
// ctx ends; nc is the caller's to close where it fails.
func (k *Kind) Enter(ctx context.Context, nc net.Conn, keys Keys) (net.Conn, error) {
	c := tls.Client(nc, k.clientTLS())
	stop := context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := c.HandshakeContext(ctx); err != nil {
		if strings.HasSuffix(err.Error(), "no application protocol") { // crypto/tls has no error to compare with
			err = fmt.Errorf("%w: it does not speak %s", k.Version, k.Protocol)
		}
		return nil, err
	}
	secret, err := k.secretOf(c)
	if err != nil {
		return nil, err
	}
	if _, err := c.Write(k.hello(keys, secret)); err != nil {
		return nil, err
	}
	v, err := readVerdict(c)
	if err != nil {
		return nil, err
	}
	if err := k.believe(keys, v, secret); err != nil {
		return nil, err
	}
	if !stop() {
		return nil, context.Cause(ctx)
	}
	return c, nil
}

// Config says who gets in.
type Config struct {
	*Kind
	Keys
	Greet  time.Duration // for showing the key; 0: GreetLimit
	Files  int           // descriptors that a connection takes, for how many there may be
	Logger hclog.Logger  // nil for silence
}

// Door is a server's side. Its methods may be called by several goroutines.
type Door struct {
	cfg Config
	tls *tls.Config

	mu      sync.Mutex
	unknown *unproved.Room[net.Conn]
	slow    unproved.Slow // who has shown wrong keys
	warned  time.Time
	closed  bool
}

// New makes a door.
func New(cfg Config) (*Door, error) {
	if cfg.Greet <= 0 {
		cfg.Greet = GreetLimit
	}
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	t, err := cfg.serverTLS()
	if err != nil {
		return nil, err
	}
	return &Door{cfg: cfg, tls: t, unknown: unproved.NewRoom[net.Conn](socket.Bounds(maxThere, MaxUnknown, cfg.Files))}, nil
}

// Admit makes nc a safe connection to a client that has the key. It blocks until the client
// has shown it; nc is the caller's to close where it fails, which Admit has logged.
func (d *Door) Admit(nc net.Conn) (net.Conn, error) {
	if !d.wait(nc) {
		return nil, net.ErrClosed
	}
	defer d.forget(nc)
	c, err := d.greet(nc)
	if err != nil {
		d.turnedAway(nc, err)
		return nil, err
	}
	return c, nil
}

// Unknown is how many connections have not shown their key.
func (d *Door) Unknown() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.unknown.Len()
}

// Close closes the connections that have not shown their key, and every further one.
func (d *Door) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for _, nc := range d.unknown.All() {
		_ = nc.Close()
	}
}

// wait counts a client that has not shown its key. Where there are too many, the one of the
// same address goes that has had most time: those who have a key are quick.
func (d *Door) wait(nc net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	if out, evicted := d.unknown.Enter(nc, unproved.FromAddr(nc.RemoteAddr())); evicted {
		_ = out.Close()
	}
	return true
}

func (d *Door) forget(nc net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unknown.Leave(nc)
}

// greet makes the connection a safe one and has the client show its key.
func (d *Door) greet(nc net.Conn) (*tls.Conn, error) {
	_ = nc.SetDeadline(time.Now().Add(d.cfg.Greet)) // a connection that is over says so when it is read
	c := tls.Server(nc, d.tls)
	if err := c.Handshake(); err != nil {
		return nil, err
	}
	secret, err := d.cfg.secretOf(c)
	if err != nil {
		return nil, err
	}
	var b [helloSize]byte
	if _, err := io.ReadFull(c, b[:]); err != nil {
		return nil, err
	}
	v := d.cfg.judge(d.cfg.Keys, b[:], secret)
	if !v.granted {
		if err := d.punish(nc); err != nil {
			return nil, fmt.Errorf("%w: %s (it left before it was told: %w)", d.cfg.Denied, v.text, err)
		}
	}
	if _, err := c.Write(v.append(nil)); err != nil {
		return nil, err
	}
	if !v.granted {
		_ = c.CloseWrite()
		return nil, fmt.Errorf("%w: %s", d.cfg.Denied, v.text)
	}
	return c, nil
}

// punish has a client with a wrong key wait for its answer, longer each time that one
// comes from its address. Others wait for nothing. An error tells that the connection
// is over before.
func (d *Door) punish(nc net.Conn) error {
	now := time.Now()
	d.mu.Lock()
	pause := d.slow.Wrong(unproved.FromAddr(nc.RemoteAddr()), now)
	d.mu.Unlock()
	if pause == 0 {
		return nil
	}
	_ = nc.SetReadDeadline(now.Add(min(pause, d.cfg.Greet/2))) // the answer must come in time
	_, err := io.Copy(io.Discard, nc)                          // it has nothing more to say that counts
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil
	case err == nil:
		return io.EOF
	}
	return err
}

// turnedAway logs why a client did not get in; what anybody can cause as often as
// they like is said once in a while.
func (d *Door) turnedAway(nc net.Conn, err error) {
	d.mu.Lock()
	now := time.Now()
	warn := errors.Is(err, d.cfg.Denied) && now.Sub(d.warned) >= warnings
	if warn {
		d.warned = now
	}
	d.mu.Unlock()
	level := hclog.Debug
	if warn {
		level = hclog.Warn
	}
	d.cfg.Logger.Log(level, "turned away", "peer", nc.RemoteAddr(), "reason", err)
}
