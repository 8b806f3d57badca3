package transporttest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

var listenCases = []Case{
	{"T-DIAL-01", "dial-nobody", "dialling an address where nobody listens any more fails with a typed error", dialNobody},
	{"T-DIAL-02", "dial-nonsense", "dialling what is no address fails with a typed error", dialNonsense},
	{"T-DIAL-03", "dial-in-time", "Dial does not outlive its context", dialInTime},
	{"T-DIAL-04", "many-dials", "dials at the same time make as many links, each to its own peer", manyDials},
	{"T-DIAL-05", "dial-cancelled", "Dial ends when its context is cancelled, at any moment, and the listener goes on", dialCancelled},
	{"T-ACCEPT-01", "accept-cancelled", "Accept ends with its context, and the listener goes on", acceptCancelled},
	{"T-ACCEPT-02", "accept-closed", "Close ends the calls of Accept with ErrClosed, and later ones too", acceptClosed},
	{"T-ACCEPT-03", "links-outlive-listener", "links work on after their listener was closed", linksOutliveListener},
}

// typed expects an error that follows the contract.
func (e *env) typed(l link.Link, err error, when string) {
	e.Helper()
	if err == nil {
		l.Close()
		e.Fatalf("%s: Dial made a link", when)
	}
	if l != nil {
		e.Fatalf("%s: Dial gives an error and a link (%T)", when, l)
	}
	var te *transports.Error
	if !errors.As(err, &te) {
		e.Fatalf("%s: the error is no *transports.Error but %T: %v", when, err, err)
	}
	if te.Transport != e.h.Dialler.Info().Name || te.Op != "dial" || te.Reason == "" || te.Code == "" || te.Code == transports.CodeInternal {
		e.Fatalf("%s: the error does not say what happened: %+v", when, te)
	}
}

func dialNobody(e *env) {
	ln := e.listen()
	a, b := e.pairAt(ln)
	e.must(e.greet(a, b, "somebody is there"))
	e.must(ln.Close())
	l, err := e.dial(e.context(), ln.Address())
	e.typed(l, err, "listener closed")
}

func dialNonsense(e *env) {
	for _, address := range []string{"", " ", "nonsense", "a\x00b", "127.0.0.1:99999", "::::", strings.Repeat("x", 100000)} {
		l, err := e.dial(e.context(), address)
		e.typed(l, err, fmt.Sprintf("address %.20q", address))
	}
}

func dialInTime(e *env) {
	ln := e.listen()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	l, err := e.dial(ended, ln.Address())
	e.typed(l, err, "context ended before")

	// With a deadline that may strike at any point, either outcome is right.
	for _, d := range []time.Duration{time.Nanosecond, 50 * time.Microsecond, time.Millisecond} {
		ctx, cancel := context.WithTimeout(context.Background(), d)
		l, err := e.dial(ctx, ln.Address())
		cancel()
		if err != nil {
			e.typed(l, err, "context ended meanwhile")
		} else {
			l.Close()
		}
	}
}

func dialCancelled(e *env) {
	ln := e.listen()
	for round := range 40 {
		ctx, cancel := context.WithCancel(context.Background())
		e.together(func() error {
			l, err := e.dial(ctx, ln.Address())
			var te *transports.Error
			switch {
			case err == nil:
				return l.Close()
			case !errors.As(err, &te):
				return fmt.Errorf("the error of a dial that was given up is no *transports.Error but %T: %w", err, err)
			}
			return nil
		}, func() error {
			for range round * 50 { // before, in, and after the dial
				runtime.Gosched()
			}
			cancel()
			return nil
		})
	}
	// Links whose diallers have gone may come first.
	a, err := e.dial(e.context(), ln.Address())
	e.must(err)
	e.Cleanup(func() { a.Close() })
	e.must(e.send(a, []byte("!")))
	for {
		b, err := ln.Accept(e.context())
		if te, ok := errors.AsType[*transports.Error](err); ok && te.Retryable {
			continue // one that had gone before it was accepted
		}
		e.must(err)
		got := make([]byte, 1)
		err = e.recv(b, got)
		b.Close()
		if err == nil {
			return
		}
	}
}

func manyDials(e *env) {
	ln := e.listen()
	ctx, stop := context.WithCancel(e.context())
	defer stop()
	const links = 32
	var mu sync.Mutex
	seen := map[byte]bool{}
	var work []func() error
	for i := range links {
		work = append(work, func() error {
			l, err := e.dial(ctx, ln.Address())
			if err != nil {
				stop() // one link fewer comes
				return err
			}
			defer l.Close()
			got := make([]byte, 1)
			if err := errors.Join(e.send(l, []byte{byte(i)}), e.recv(l, got)); err != nil {
				return err
			}
			if got[0] != byte(i)+100 {
				return fmt.Errorf("dialler %d was answered by the peer of %d", i, got[0]-100)
			}
			return nil
		}, func() error {
			l, err := ln.Accept(ctx)
			if err != nil {
				return err
			}
			e.Cleanup(func() { l.Close() })
			got := make([]byte, 1)
			if err := e.recv(l, got); err != nil {
				return err
			}
			mu.Lock()
			seen[got[0]] = true
			mu.Unlock()
			return e.send(l, []byte{got[0] + 100})
		})
	}
	e.together(work...)
	if len(seen) != links {
		e.Fatalf("%d diallers, %d of them seen", links, len(seen))
	}
}

func acceptCancelled(e *env) {
	ln := e.listen()
	for round := range 20 {
		ctx, cancel := context.WithCancel(context.Background())
		e.together(func() error {
			l, err := ln.Accept(ctx)
			if err == nil {
				l.Close()
				return errors.New("a link was accepted although nobody dialled")
			}
			if errors.Is(err, link.ErrClosed) {
				return fmt.Errorf("only the context of Accept has ended, and it reports: %w", err)
			}
			return nil
		}, func() error {
			for range round * 10 { // to end it before, in, and well in the call
				runtime.Gosched()
			}
			cancel()
			return nil
		})
	}
	a, b := e.pairAt(ln)
	e.must(e.greet(a, b, "still open"))
}

func acceptClosed(e *env) {
	ln := e.listen()
	ctx := e.context()
	accept := func() error {
		l, err := ln.Accept(ctx)
		switch {
		case err == nil:
			l.Close()
			return errors.New("a link was accepted from a closed listener")
		case !errors.Is(err, link.ErrClosed):
			return fmt.Errorf("not link.ErrClosed from a closed listener: %w", err)
		}
		return nil
	}
	e.together(accept, accept, accept, ln.Close)
	e.must(accept())
	e.must(ln.Close())
}

func linksOutliveListener(e *env) {
	ln := e.listen()
	a, b := e.pairAt(ln)
	e.must(ln.Close())
	e.must(e.greet(a, b, "one way"))
	e.must(e.greet(b, a, "and the other"))
}
