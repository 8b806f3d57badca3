// Package accept accepts the links that come to a site's listeners and has their diallers prove
// themselves. What happens with a link then is decided elsewhere, by its purpose.
package accept

import (
	"context"
	"errors"
	"net/netip"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/internal/connmgr/dial"
	"github.com/openimpi/impi/internal/lifetime"
	"github.com/openimpi/impi/internal/site"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/support/unproved"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

// linkFiles is how many file descriptors a link has at most: one whose data plane is
// "grpc" has a pair of sockets and a pipe.
const linkFiles = 4

// Settings say how links are accepted.
type Settings struct {
	Tasks *lifetime.Group
	Log   hclog.Logger
	Keys  func(at *site.Listener) dynamic.Keys // by which greetings at a listener are proved

	// Handle answers the greeting of a link before ctx ends, and owns the link from then on. If it
	// returns an error, the link is refused or lost, and Arrivals closes it.
	Handle func(ctx context.Context, a *Arrival) error
}

// Arrival is a link whose other end has proved its identity.
type Arrival struct {
	Link     link.Link
	Hello    dynamic.Hello
	At       *site.Listener
	Greeting *dynamic.Acceptor
}

// Answer sends the verdict to the other end. A refusal is an error here, too.
func (a *Arrival) Answer(ctx context.Context, v dynamic.Verdict) error {
	return dial.Answer(ctx, a.Link, a.Greeting, v)
}

// Arrivals accepts links. If too many have not greeted yet, the slowest are closed, since diallers
// of ours greet at once.
type Arrivals struct {
	Settings
	waiting *socket.Waiting // links at all listeners that have not greeted
}

// New makes Arrivals; Serve gives it listeners.
func New(s Settings) *Arrivals { return &Arrivals{s, socket.NewWaiting(linkFiles)} }

// Serve accepts links at a listener, as a task, until it is closed.
func (s *Arrivals) Serve(l *site.Listener) { s.Tasks.Go(func() { s.serve(l) }) }

func (s *Arrivals) serve(l *site.Listener) {
	for {
		x, from, err := next(s.Tasks, l)
		if err != nil {
			if s.Tasks.Err() == nil {
				s.Log.Warn("direct links cannot arrive any more", "transport", l.Transport.Name, "error", err)
			}
			return
		}
		ctx, evict := context.WithCancelCause(s.Tasks)
		leave := s.waiting.Enter(from, func() { evict(errTooManyWait) })
		begun := s.Tasks.Go(func() {
			defer evict(nil)
			if err := s.accept(ctx, leave, x, l); err != nil {
				_ = x.Close()
				s.Log.Debug("refused a direct link", "transport", l.Transport.Name, "error", err)
			}
		})
		if !begun {
			leave()
			evict(nil)
			_ = x.Close()
			return
		}
	}
}

func next(ctx context.Context, l *site.Listener) (x link.Link, from unproved.Source, err error) {
	plugin, ok := l.Listener.(interface {
		AcceptFrom(context.Context) (link.Link, netip.Addr, error)
	})
	if !ok {
		if x, err = l.Accept(ctx); err != nil {
			return nil, from, err
		}
		return x, socket.SourceOf(x), nil
	}
	x, at, err := plugin.AcceptFrom(ctx)
	if err != nil {
		return nil, from, err
	}
	if from = socket.SourceOf(x); from == (unproved.Source{}) && at.IsValid() {
		from = unproved.From(at)
	}
	return x, from, nil
}

var errTooManyWait = errors.New("too many connections had not greeted yet, and this was the oldest")

func (s *Arrivals) accept(within context.Context, leave func(), l link.Link, at *site.Listener) error {
	g, err := s.identify(within, leave, l, at)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(s.Tasks, dynamic.GreetLimit)
	defer cancel()
	hello, _ := g.Peer()
	if err := s.Handle(ctx, &Arrival{Link: l, Hello: hello, At: at, Greeting: g}); err != nil {
		return err
	}
	if dial.IsForJob(&hello) {
		at.Transport.Plugin.CountLink()
	}
	return nil
}

// identify has the dialler of a link prove itself before ctx ends. It calls leave at the end.
func (s *Arrivals) identify(ctx context.Context, leave func(), l link.Link, at *site.Listener) (*dynamic.Acceptor, error) {
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, dynamic.GreetLimit)
	defer cancel()
	g := dynamic.NewAcceptor(s.Keys(at), dial.Nonce())
	known := func() bool { _, ok := g.Peer(); return ok }
	return g, dial.Greet(ctx, l, g, known)
}
