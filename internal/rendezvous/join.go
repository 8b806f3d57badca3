package rendezvous

import (
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
)

// ErrNoServer is wrapped by the error of a client that could not connect.
var ErrNoServer = errors.New("the server cannot be reached")

// Settings say how to reach the server.
type Settings struct {
	Server string     // "host:port"
	From   netip.Addr // address to connect from; the zero value leaves it to the kernel

	// Dial makes the connection; nil is TCP from From. It is called again after
	// an error that may pass: nobody listens yet.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	Logger hclog.Logger // nil for silence
}

// Join connects to the server, which may take until the time limit of cfg, and
// goes through startup. The session that it returns keeps the connection. The
// end of ctx before that ends the job with the context's cause.
func Join(ctx context.Context, set Settings, cfg startup.ClientConfig) (*Session, *startup.Job, error) {
	m, err := startup.NewClient(cfg)
	if err != nil {
		return nil, nil, err
	}
	if set.Logger == nil {
		set.Logger = hclog.NewNullLogger()
	}
	limit := cfg.Limit
	if limit <= 0 {
		limit = startup.DefaultLimit
	}
	nc, err := connect(ctx, set, limit)
	if err != nil {
		return nil, nil, fmt.Errorf("startup: client %d: %w", cfg.Rank, err)
	}
	set.Logger.Debug("connected", "server", set.Server, "from", nc.LocalAddr())
	s := &Session{m: m, nc: nc, lost: make(chan struct{}), ended: make(chan struct{})}
	job, err := s.start(ctx)
	if err != nil {
		return nil, nil, err
	}
	go s.watch()
	return s, job, nil
}

// connect dials until somebody answers, for at most limit.
func connect(ctx context.Context, set Settings, limit time.Duration) (net.Conn, error) {
	dial := set.Dial
	if dial == nil {
		d := &net.Dialer{}
		if set.From.IsValid() {
			d.LocalAddr = &net.TCPAddr{IP: set.From.AsSlice(), Zone: set.From.Zone()}
		}
		dial = d.DialContext
	}
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var last error // better than the context's
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		nc, err := dial(within, "tcp", set.Server)
		if err == nil {
			return nc, nil
		}
		if last == nil || within.Err() == nil {
			last = err
		}
		if within.Err() == nil && !mayPass(err) {
			return nil, fmt.Errorf("%w at %s: %w", ErrNoServer, set.Server, err)
		}
		set.Logger.Trace("no server yet", "server", set.Server, "error", err)
		select {
		case <-time.After(wait):
		case <-within.Done():
			if ctx.Err() != nil {
				return nil, fmt.Errorf("%w at %s: %w (last: %w)", ErrNoServer, set.Server, context.Cause(ctx), last)
			}
			return nil, fmt.Errorf("%w at %s: %w: nobody answered for %v, the last time: %w", ErrNoServer, set.Server, startup.ErrTimeout, limit, last)
		}
	}
}

// mayPass tells whether the same call may succeed in a moment.
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
