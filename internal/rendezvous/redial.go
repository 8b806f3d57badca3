package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/openimpi/impi/core/resume"
)

// The pauses between attempts to replace a lost connection.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = time.Second
	// quick is the age that a connection must reach to be replaced without a pause when it is lost.
	quick = time.Second
)

type redialler struct {
	c      *ownClient
	l      *resumableConn
	server string
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
	ctx    context.Context
	cancel context.CancelFunc

	since  time.Time // start of the last connection; under l's lock
	wanted int       // number of times a new connection was wanted; 0: not wanted now; under l's lock
}

// resumable returns a resumable connection that begins with nc, on which the handshake is
// over. It is independent of the context of the dial.
func (c *ownClient) resumable(nc net.Conn, set *Settings) (net.Conn, error) {
	r := &redialler{c: c, l: newResumableConn(c.session, true, nc), server: set.Server, dial: set.Dial}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.l.kept = c.kept
	r.l.lost, r.l.found, r.l.stop, r.l.renew = r.lost, r.found, r.cancel, r.renew
	return r.l, r.l.dial(nc)
}

func (r *redialler) lost(epoch uint64, why error) {
	pause := time.Duration(0)
	if time.Since(r.since) < quick {
		pause = lastPause / 4
	}
	limits := []any{"for", r.c.kept}
	if r.c.kept > goneAfter {
		limits = append(limits, "or_if_refused_for", goneAfter)
	}
	r.c.log.Warn("the connection to the server is lost and dialled again", append(limits, "reason", why)...)
	r.l.wg.Go(func() { r.again(epoch, pause, why) })
}

func (r *redialler) found() {
	switch {
	case r.wanted > 0:
		r.c.log.Info("the connection to the server is made again, with the certificates of now")
	case !r.since.IsZero():
		r.c.log.Info("the connection to the server is resumed")
	}
	r.since = time.Now()
}

// again dials until there is a connection, or until trying again cannot succeed.
func (r *redialler) again(epoch uint64, pause time.Duration, why error) {
	begun := time.Now()
	refused := begun // since when the server has refused connections
	for wait := firstPause; ; wait = min(2*wait, lastPause) {
		select {
		case <-time.After(pause):
			pause = wait
		case <-r.ctx.Done():
			return
		}
		err := r.redialOnce()
		switch now := time.Now(); {
		case err == nil, r.ctx.Err() != nil:
			return
		case !passes(err) && !errors.Is(err, ErrNoServer):
			r.l.fail(epoch, &forGood{fmt.Errorf("it cannot be made again: %w", err)})
			return
		case !errors.Is(err, syscall.ECONNREFUSED):
			refused = now
			fallthrough
		default:
			if now.Sub(begun) >= r.c.kept || now.Sub(refused) >= goneAfter {
				r.l.fail(epoch, notAgain(now.Sub(begun).Round(time.Second), fmt.Errorf("%w; at last: %w", why, err)))
				return
			}
			r.c.log.Debug("the server cannot be reached", "server", r.server, "error", err)
		}
	}
}

// warnAfter is how often a new connection may be refused before the operator hears of it.
const warnAfter = 10

// renew has the session carried on by a new connection, for which both ends prove who they are by
// their current certificates. The present connection stays until then. The caller has l's lock.
func (r *redialler) renew() {
	if r.wanted++; r.wanted == 1 {
		r.l.wg.Go(r.untilNew)
	}
}

func (r *redialler) untilNew() {
	for tries := 1; ; tries++ {
		r.l.mu.Lock()
		wanted, over := r.wanted, r.l.machine.Status().State >= resume.Done
		r.l.mu.Unlock()
		if over || r.ctx.Err() != nil {
			return
		}
		err := r.redialOnce()
		if err == nil {
			r.l.mu.Lock()
			again := r.wanted > wanted
			if !again {
				r.wanted = 0
			}
			r.l.mu.Unlock()
			if !again {
				return
			}
			continue
		}
		if tries == warnAfter {
			r.c.log.Warn("the connection to the server keeps the old certificates: the server refuses a new one, which is tried again each second; has it new certificates?", "reason", err)
		}
		select {
		case <-time.After(lastPause):
		case <-r.ctx.Done():
			return
		}
	}
}

func (r *redialler) redialOnce() error {
	ctx, cancel := context.WithTimeout(r.ctx, greetLimit)
	defer cancel()
	nc, err := r.dial(ctx, "tcp", r.server)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoServer, err)
	}
	t, err := r.c.greet(ctx, nc)
	if err != nil {
		return err
	}
	if err := r.l.dial(t); err != nil {
		t.NetConn().Close()
		return err
	}
	return nil
}
