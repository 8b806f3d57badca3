package transporttest

import (
	"context"
	"errors"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

var loadCases = []Case{
	{"T-LOAD-01", "short-links", "thousands of links, one after another, each with a question and an answer", shortLinks},
	{"T-LOAD-02", "busy-links", "32 links that are busy both ways at the same time", busyLinks},
}

func shortLinks(e *env) {
	ln := e.listen()
	for i := range e.h.Links {
		if err := e.shortLink(ln); err != nil {
			e.Fatalf("link %d of %d: %v", i+1, e.h.Links, err)
		}
	}
}

// shortLink makes a link, uses it both ways and closes both its ends.
func (e *env) shortLink(ln transports.Listener) error {
	ctx, cancel := context.WithTimeout(context.Background(), e.h.Patience)
	defer cancel()
	type end struct {
		link.Link
		err error
	}
	dialled := make(chan end, 1)
	go func() {
		l, err := e.dial(ctx, ln.Address())
		if err != nil {
			cancel() // no peer comes
		}
		dialled <- end{l, err}
	}()
	b, err := ln.Accept(ctx)
	a := <-dialled
	if a.err == nil {
		defer a.Close()
	}
	if err == nil {
		defer b.Close()
	}
	if err := errors.Join(a.err, err); err != nil {
		return err
	}
	if err := e.greet(a, b, "a question"); err != nil {
		return err
	}
	return e.greet(b, a, "the answer")
}

// busyLinks uses many links at the same time, with as many goroutines as a large site has procs.
func busyLinks(e *env) {
	ln := e.listen()
	var work []func() error
	for i := range 32 {
		a, b := e.pairAt(ln)
		total := min(e.h.Large/32, 1<<20)
		cuts := func(n uint64) cut { return cut{seeded(uint64(i)*4 + n), 3, 30000} }
		ab, abIn := e.stream(a, b, total, cuts(0), cuts(1))
		ba, baIn := e.stream(b, a, total, cuts(2), cuts(3))
		work = append(work, ab, abIn, ba, baIn)
	}
	e.together(work...)
}
