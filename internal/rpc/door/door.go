package door

import (
	"context"
	"crypto/tls"
	"crypto/x509"
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

// Limits of connections that have not proved the key.
const (
	GreetLimit = 10 * time.Second // for the proof
	MaxUnknown = 256              // connections in all
	maxThere   = 64               // connections from one address
	warnings   = time.Second      // interval between log lines about wrong keys, at least
)

// Conn is an encrypted connection whose two ends have proved the key to each other.
type Conn struct {
	*tls.Conn
	// Refused is why this end does not accept the certificate of the other, if it has an Identity to judge
	// it by; it wraps [identity.ErrPeer]. What the other says is nevertheless from who has the key, so
	// it may say who it is and hear why it is refused. Its owner allows it no more than that.
	Refused error
}

// Enter is a client's side: it makes an encrypted connection over nc to a server that has
// the same key. It reads nothing that comes after that. It blocks until then, or until ctx
// ends. If it fails the caller has to close nc.
func (k *Kind) Enter(ctx context.Context, nc net.Conn, keys Keys) (*Conn, error) {
	c := tls.Client(nc, k.clientTLS(keys.Identity))
	stop := context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := c.HandshakeContext(ctx); err != nil {
		if strings.HasSuffix(err.Error(), "no application protocol") { // crypto/tls has no error value for this
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
	return k.conn(c, keys.Identity, x509.ExtKeyUsageServerAuth), nil
}

// Config configures a Door.
type Config struct {
	*Kind
	Keys
	Greet  time.Duration // for proving the key; 0: GreetLimit
	Files  int           // descriptors per connection, which limits their number
	Logger hclog.Logger  // nil for silence
}

// Door is a server's side. Its methods may be called by several goroutines.
type Door struct {
	cfg Config
	tls *tls.Config

	mu      sync.Mutex
	unknown *unproved.Set[net.Conn]
	slow    unproved.Slow // addresses that have sent wrong keys
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
	t, err := cfg.serverTLS(cfg.Identity)
	if err != nil {
		return nil, err
	}
	return &Door{cfg: cfg, tls: t, unknown: unproved.NewSet[net.Conn](socket.Bounds(maxThere, MaxUnknown, cfg.Files))}, nil
}

// Admit makes an encrypted connection over nc to a client that has the key. It blocks until
// the client has proved that. If it fails, Admit has logged why, and the caller has to
// close nc.
func (d *Door) Admit(nc net.Conn) (*Conn, error) {
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

// Close closes the connections that have not proved the key. It refuses all that follow.
func (d *Door) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for _, nc := range d.unknown.All() {
		_ = nc.Close()
	}
}

// wait counts a client that has not proved the key. If there are too many, it closes the
// oldest of the same address: clients with a key prove it quickly.
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

// greet makes the TLS connection and has the client prove the key.
func (d *Door) greet(nc net.Conn) (*Conn, error) {
	_ = nc.SetDeadline(time.Now().Add(d.cfg.Greet)) // a connection that has ended fails when it is read
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
	return d.cfg.conn(c, d.cfg.Identity, x509.ExtKeyUsageClientAuth), nil
}

// punish delays the answer to a client with a wrong key, longer each time for its address.
// It does not delay other clients. It returns an error if the connection ends before.
func (d *Door) punish(nc net.Conn) error {
	now := time.Now()
	d.mu.Lock()
	pause := d.slow.Wrong(unproved.FromAddr(nc.RemoteAddr()), now)
	d.mu.Unlock()
	if pause == 0 {
		return nil
	}
	_ = nc.SetReadDeadline(now.Add(min(pause, d.cfg.Greet/2))) // so that the answer comes in time
	_, err := io.Copy(io.Discard, nc)                          // the client's further bytes are ignored
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil
	case err == nil:
		return io.EOF
	}
	return err
}

// turnedAway logs why a client was refused, at most once in a while if anybody can cause
// it.
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
