package transporttest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

var listeners atomic.Int64

type env struct {
	T
	c Case
	h Harness
}

// Fatalf fails the case, with its number and its rule.
func (e *env) Fatalf(format string, args ...any) {
	e.Helper()
	e.T.Fatalf("%s: %s (the rule: %s)", e.c.ID, fmt.Sprintf(format, args...), e.c.Rule)
}

func (e *env) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), e.h.Patience)
	e.Cleanup(cancel)
	return ctx
}

// listen opens a listener, which is closed at the end.
func (e *env) listen() transports.Listener {
	e.Helper()
	at := e.h.Listen
	at.Name = fmt.Sprintf("%s-%d", at.Name, listeners.Add(1))
	ln, err := e.h.Transport.Listen(e.context(), at)
	if err != nil {
		e.Fatalf("listen: %v", err)
	}
	e.Cleanup(func() { ln.Close() })
	return ln
}

func (e *env) dial(ctx context.Context, address string) (link.Link, error) {
	return e.h.Dialler.Dial(ctx, transports.DialSpec{Address: address, From: e.h.From})
}

// pair makes a link and returns its two ends, which are closed at the end.
func (e *env) pair() (dialled, accepted link.Link) {
	e.Helper()
	return e.pairAt(e.listen())
}

// pairAt makes a link to the open listener ln and returns its two ends, which are closed at the
// end.
func (e *env) pairAt(ln transports.Listener) (dialled, accepted link.Link) {
	e.Helper()
	ctx, stop := context.WithCancel(e.context())
	defer stop()
	e.together(
		func() (err error) {
			if dialled, err = e.dial(ctx, ln.Address()); err != nil {
				stop() // no peer comes
			}
			return err
		},
		func() (err error) { accepted, err = ln.Accept(ctx); return err },
	)
	e.Cleanup(func() { dialled.Close(); accepted.Close() })
	return dialled, accepted
}

// together runs functions at the same time and fails with their first error. An error of one that
// was given up because of another one does not count.
func (e *env) together(fs ...func() error) {
	e.Helper()
	results := make(chan error, len(fs))
	for _, f := range fs {
		go func() { results <- f() }()
	}
	var first error
	for range fs {
		if err := <-results; err != nil && (first == nil || errors.Is(first, context.Canceled)) {
			first = err
		}
	}
	if first != nil {
		e.Fatalf("%v", first)
	}
}

func (e *env) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatalf("%v", err)
	}
}
