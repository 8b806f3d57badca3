package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/node/routes"
	"github.com/openimpi/impi/transports"
)

const (
	dialLimit  = 10 * time.Second // for one transport's dial
	greetLimit = 10 * time.Second // for the greeting behind it
)

// search dials and waits as a dynamic.Search decides.
type search struct {
	*dynamic.Search
	mu     sync.Locker // of its ties; nil: it has none
	ways   []routes.Way
	dial   func(context.Context, routes.Way, dynamic.SearchStep) (link.Link, error)
	missed func(routes.Way, error) // is told of each way that failed; may be nil
	rests  func()                  // is told when all have failed and are to be tried again; may be nil
	holds  func()                  // is told when a link that is made has to wait; may be nil
}

// run searches until there is a link, or there will be none, or ctx ends, which it takes for
// GiveUp.
func (s *search) run(ctx context.Context) (l link.Link, by routes.Way, last dynamic.SearchStep) {
	step := s.step(func() dynamic.SearchStep { return s.Begin(time.Now()) })
	for {
		switch step.Action {
		case dynamic.DialWay:
			if ctx.Err() != nil {
				return nil, by, dynamic.SearchStep{Action: dynamic.GiveUp}
			}
			var err error
			by = s.ways[step.Way]
			known := len(s.Missed())
			l, err = s.dial(ctx, by, step)
			step = s.step(func() dynamic.SearchStep { return s.Answered(time.Now(), answerOf(err)) })
			if s.missed != nil && len(s.Missed()) > known {
				s.missed(by, err)
			}
		case dynamic.Pause, dynamic.Rest:
			if step.Action == dynamic.Rest && s.rests != nil {
				s.rests()
			}
			if l != nil && s.holds != nil {
				s.holds()
			}
			select {
			case <-time.After(step.Wait):
			case <-ctx.Done():
				if l != nil {
					_ = l.Close()
				}
				return nil, by, dynamic.SearchStep{Action: dynamic.GiveUp}
			}
			step = s.step(func() dynamic.SearchStep { return s.Waited(time.Now()) })
		case dynamic.CloseLink:
			_ = l.Close()
			return nil, by, step
		default:
			return l, by, step
		}
	}
}

func (s *search) step(f func() dynamic.SearchStep) dynamic.SearchStep {
	if s.mu != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
	}
	return f()
}

// reasons says why all ways have failed, none where there was no way.
func (s *search) reasons() string {
	var list []string
	for _, m := range s.Missed() {
		w := s.ways[m.Way]
		list = append(list, fmt.Sprintf("%s at %s: %v", w.T.Name, w.Address, m.Err))
	}
	return strings.Join(list, "; ")
}

// errors has why all ways have failed.
func (s *search) errors() error {
	var errs []error
	for _, m := range s.Missed() {
		w := s.ways[m.Way]
		errs = append(errs, fmt.Errorf("%s at %s: %w", w.T.Name, w.Address, m.Err))
	}
	return errors.Join(errs...)
}

// fellBack warns that a link is not by the transport that the file prefers most, if another one was
// tried before and failed. what is a link of procs or of agents.
func (n *node) fellBack(what string, to wire.ClientRank, by routes.Way, s *search) {
	for _, m := range s.Missed() {
		w := s.ways[m.Way]
		if w.T == by.T || m.Verdict == dynamic.NotAllowed { // another address of its; ruled out by the peer's routes
			continue
		}
		n.log.Log(n.fallBacks.level(to, by.T.Name), "a "+what+" is not by the transport that the route prefers, which failed",
			"to", n.routes.ClientName(to), "transport", by.T.Name, "encrypted", by.T.Capabilities().Has(transports.FeatureEncrypted),
			"preferred", w.T.Name, "reason", m.Err)
		return
	}
}

// Errors of dials, for answerOf.
var (
	// errNoRoom is wrapped when the acceptor hung up before it had heard who we are.
	errNoRoom = errors.New("the peer had no room for a greeting")
	// errUncertain is wrapped when a connection broke in its greeting: the peer's node may
	// have given its end to the proc, or not.
	errUncertain = errors.New("lost in the greeting")
)

// answerOf is what a search is told of a dial.
func answerOf(err error) dynamic.Answer {
	a := dynamic.Answer{Err: err, Verdict: refused(err)}
	var te *transports.Error
	if errors.As(err, &te) {
		switch te.Code {
		case transports.CodeRefused:
			a.Fault |= dynamic.NotListening
		case transports.CodeResource:
			a.Fault |= dynamic.NoRoom
		case transports.CodeAddress, transports.CodeUnsupported, transports.CodeAuth:
			a.Fault |= dynamic.Impossible
		default: // it may go by
		}
	}
	if errors.Is(err, errNoRoom) {
		a.Fault |= dynamic.NoRoom
	}
	if errors.Is(err, errUncertain) {
		a.Fault |= dynamic.Uncertain
	}
	return a
}

// refused gives the verdict of a peer that proved to be of our job.
func refused(err error) dynamic.Verdict {
	var r *dynamic.RefusedError
	if errors.As(err, &r) && r.Proven {
		return r.Verdict
	}
	return dynamic.Accepted
}

// dialFor makes a link to a proc by a way, for any purpose that a greeting can name, and greets the
// other node. It takes the session out of hello for a link that needs none.
func (d *directLinks) dialFor(within context.Context, hello *dynamic.Hello, w routes.Way) (link.Link, error) {
	return d.dialBy(within, d.n.routes.Pinned(w.T, hello.Dst), hello, w)
}

// dialBy is dialFor by a transport with what is pinned.
func (d *directLinks) dialBy(within context.Context, t transports.Transport, hello *dynamic.Hello, w routes.Way) (link.Link, error) {
	return dialWith(within, d.token, t, hello, w)
}

// dialWith is dialBy with a greeting that another token keys than the job's.
func dialWith(within context.Context, token dynamic.Token, t transports.Transport, hello *dynamic.Hello, w routes.Way) (link.Link, error) {
	ctx, cancel := context.WithTimeout(within, dialLimit)
	defer cancel()
	l, err := t.Dial(ctx, transports.DialSpec{Address: w.Address, From: w.From})
	if err != nil {
		return nil, err
	}
	if !hello.Again && !hello.Lost && !breakable(l) {
		hello.Session = dynamic.Session{}
	}
	ctx, stop := context.WithTimeout(within, greetLimit)
	defer stop()
	g := dynamic.NewDialler(token, nonce(), *hello)
	if err := converse(ctx, l, g, g.Done); err != nil {
		_ = l.Close()
		if refused(err) != dynamic.Accepted {
			return nil, err
		}
		if !g.Proved() && (errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, link.ErrBroken)) { // it cannot have accepted
			err = fmt.Errorf("%w: %w", errNoRoom, err)
		}
		if hello.Session != (dynamic.Session{}) {
			err = fmt.Errorf("%w: %w", errUncertain, err)
		}
		return nil, err
	}
	return l, nil
}

// ways lists how a pair could be linked, best first.
func (n *node) ways(x pair) []routes.Way {
	return n.routes.Ways(x.local, x.peer, n.procOf(x.local).host.config.Address.String())
}
