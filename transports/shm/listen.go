package shm

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

const (
	exchangeLimit = 10 * time.Second // for the exchange with one peer
	maxExchanges  = 64               // at a time
)

// Listen makes the socket at which peers meet this listener.
func (t *Transport) Listen(ctx context.Context, at transports.ListenSpec) (transports.Listener, error) {
	boot, err := t.boot()
	if err != nil {
		return nil, failure("listen", at.Name, transports.CodeInternal, err)
	}
	inner, err := t.sockets.Listen(ctx, at)
	if err != nil {
		return nil, renamed(err, at.Name)
	}
	l := &listener{
		inner: inner, address: boot + "!" + inner.Address(),
		ready: make(chan result), slots: make(chan struct{}, maxExchanges),
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.wg.Go(l.run)
	return l, nil
}

// listener accepts offers of memory, several at a time, so that a silent peer delays no
// other.
type listener struct {
	inner   transports.Listener
	address string
	ready   chan result
	slots   chan struct{}
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	wg      sync.WaitGroup
}

type result struct {
	l   link.Link
	err error
}

func (l *listener) run() {
	for {
		select {
		case l.slots <- struct{}{}:
		case <-l.ctx.Done():
			return
		}
		x, err := l.inner.Accept(l.ctx)
		if errors.Is(err, link.ErrClosed) || l.ctx.Err() != nil {
			if x != nil {
				_ = x.Close()
			}
			return
		}
		l.wg.Go(func() {
			l.give(l.exchange(x, err))
			<-l.slots
		})
	}
}

func (l *listener) exchange(x link.Link, err error) result {
	if err != nil {
		return result{err: renamed(err, l.address)}
	}
	ctx, cancel := context.WithTimeout(l.ctx, exchangeLimit)
	defer cancel()
	sock, err := detach(x)
	if err == nil {
		var r link.Link
		if r, err = accept(ctx, sock); err == nil {
			return result{l: r}
		}
	}
	err = explain("accept", l.address, err)
	if e, ok := errors.AsType[*transports.Error](err); ok {
		e.Retryable = true // that peer was refused; the listener continues
	}
	return result{err: err}
}

func (l *listener) give(r result) {
	select {
	case l.ready <- r:
	case <-l.ctx.Done():
		if r.l != nil {
			_ = r.l.Close()
		}
	}
}

// Accept waits for the next link and returns it.
func (l *listener) Accept(ctx context.Context) (link.Link, error) {
	if l.ctx.Err() != nil {
		return nil, link.ErrClosed
	}
	select {
	case r := <-l.ready:
		return r.l, r.err
	case <-l.ctx.Done():
		return nil, link.ErrClosed
	case <-ctx.Done():
		e := failure("accept", l.address, transports.CodeTimeout, ctx.Err())
		e.Retryable = true
		return nil, e
	}
}

// Address returns the boot ID and the socket's address.
func (l *listener) Address() string { return l.address }

// Close stops accepting.
func (l *listener) Close() error {
	l.cancel()
	err := l.inner.Close()
	l.wg.Wait()
	return err
}
