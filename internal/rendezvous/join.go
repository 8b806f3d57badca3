package rendezvous

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
)

// ErrNoServer is wrapped by the error of a client that could not connect.
var ErrNoServer = errors.New("the server cannot be reached")

// Settings define how to reach the server.
type Settings struct {
	Server string     // "host:port"
	From   netip.Addr // address to connect from; the zero value leaves it to the kernel

	// Dial makes the connection; nil is TCP from From. It is called again after an error that may
	// be temporary, for example because nothing listens yet.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// MeetLimit is the time that the site that decides waits for the others at one of several servers;
	// 0: 10 s.
	MeetLimit time.Duration

	// ReachLimit is the maximum time of one dial; 0: only the time limit applies.
	ReachLimit time.Duration

	// Own defines how to talk to a server of ours; nil: plain IMPI, as with any other server.
	Own *OwnServer

	Logger hclog.Logger // nil for silence
}

// Join connects to the server and goes through startup. Until the time limit of cfg it
// tries again while the server cannot be reached, or has no room because of unproved
// connections. The Client that it returns keeps the connection. If ctx ends before that,
// the job ends with the context's cause.
func Join(ctx context.Context, set Settings, cfg startup.ClientConfig) (*Client, *startup.Job, error) {
	if _, err := startup.NewClient(cfg); err != nil {
		return nil, nil, err
	}
	set.Logger = cmp.Or(set.Logger, hclog.NewNullLogger())
	limit := cfg.Limit
	if limit <= 0 {
		limit = startup.DefaultLimit
	}
	set.dialFrom()
	set.Dial = heeding(set.Dial)
	over := time.Now().Add(limit)
	for wait := firstBusy; ; wait = min(2*wait, lastBusy) {
		c, job, err := joinOnce(ctx, set, cfg, time.Until(over))
		if !errors.Is(err, startup.ErrBusy) {
			return c, job, err
		}
		if time.Until(over) <= wait {
			return nil, nil, fmt.Errorf("%w (for %v, which is the limit)", err, limit)
		}
		set.Logger.Log(busyLevel(wait), "the server is busy with other clients: trying again", "server", set.Server, "after", wait, "reason", err)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, nil, fmt.Errorf("startup: %s was stopped: %w (the last time: %w)", cfg.ErrorName(), context.Cause(ctx), err)
		}
	}
}

// The pauses before a busy server is dialled again.
const (
	firstBusy = 10 * time.Millisecond
	lastBusy  = time.Second
)

// busyLevel is the log level of a wait for a busy server: Warn once, then lower.
func busyLevel(wait time.Duration) hclog.Level {
	if wait == firstBusy {
		return hclog.Warn
	}
	return hclog.Debug
}

func joinOnce(ctx context.Context, set Settings, cfg startup.ClientConfig, limit time.Duration) (*Client, *startup.Job, error) {
	if set.ReachLimit > 0 {
		limit = min(limit, set.ReachLimit)
	}
	nc, auth, err := connect(ctx, set, cfg.Auth, limit)
	if err != nil {
		return nil, nil, fmt.Errorf("startup: %s: %w", cfg.ErrorName(), err)
	}
	set.Logger.Debug("connected", "server", set.Server, "from", nc.LocalAddr())
	cfg.Auth = auth
	m, err := startup.NewClient(cfg)
	if err != nil {
		nc.Close()
		return nil, nil, err
	}
	c := &Client{m: m, nc: nc, lost: make(chan struct{}), ended: make(chan struct{}), other: make(chan error, wire.MaxClients)}
	job, err := c.start(ctx)
	if err != nil {
		return nil, nil, err
	}
	go c.watch()
	return c, job, nil
}

func (set *Settings) dialFrom() {
	if set.Dial != nil {
		return
	}
	d := &net.Dialer{}
	if set.From.IsValid() {
		d.LocalAddr = &net.TCPAddr{IP: set.From.AsSlice(), Zone: set.From.Zone()}
	}
	set.Dial = d.DialContext
}

// connect dials, for at most limit, until the server answers, and begins as set.Own says.
// It returns the credentials that the server may see.
func connect(ctx context.Context, set Settings, auth startup.Auth, limit time.Duration) (net.Conn, startup.Auth, error) {
	over := time.Now().Add(limit)
	within, cancel := context.WithDeadline(ctx, over)
	defer cancel()
	o := newOpening(&set, auth)
	var last error // of the last attempt; more useful than a timeout, which a dialler may report before within does
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		nc, err := set.Dial(within, "tcp", set.Server)
		pass := mayPass(err)
		if err == nil {
			if nc, err = o.begin(within, nc); err == nil {
				return nc, o.auth, nil
			}
			pass = passes(err)
		}
		if last == nil || within.Err() == nil && time.Now().Before(over) {
			last = err
		}
		if within.Err() == nil && !pass {
			return nil, auth, o.give(err)
		}
		set.Logger.Trace("no server yet", "server", set.Server, "error", err)
		select {
		case <-time.After(wait):
		case <-within.Done():
			if ctx.Err() != nil {
				return nil, auth, fmt.Errorf("%w at %s: %w (last: %w)", ErrNoServer, set.Server, context.Cause(ctx), last)
			}
			return nil, auth, fmt.Errorf("%w at %s: %w: tried for %v, the last time: %w", ErrNoServer, set.Server, startup.ErrTimeout, limit.Round(time.Millisecond), last)
		}
	}
}

// mayPass reports whether the same call may succeed in a moment.
func mayPass(err error) bool {
	for _, e := range []error{
		syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EHOSTUNREACH, syscall.ENETUNREACH,
		syscall.ETIMEDOUT, syscall.EAGAIN, syscall.EINTR, os.ErrDeadlineExceeded,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	var dns *net.DNSError
	return errors.As(err, &dns) && dns.Temporary()
}
