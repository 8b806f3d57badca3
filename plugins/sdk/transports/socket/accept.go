package socket

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/openimpi/impi/plugins/sdk/link"
)

// Listener is a listener of package net with deadlines.
type Listener interface {
	net.Listener
	SetDeadline(time.Time) error
}

// Acceptor accepts connections of a Listener. Each call is bounded by its own context. Its
// methods may be called from several goroutines.
type Acceptor struct {
	ln     Listener
	turn   chan struct{} // full while a call waits in ln, which then uses ln's deadline
	closed chan struct{}
	close  sync.Once
}

// NewAcceptor makes an Acceptor, which owns ln from here on.
func NewAcceptor(ln Listener) *Acceptor {
	return &Acceptor{ln: ln, turn: make(chan struct{}, 1), closed: make(chan struct{})}
}

// Accept waits for the next connection. It reports link.ErrClosed after Close,
// and the context's error when that ends first; no connection is lost then.
func (a *Acceptor) Accept(ctx context.Context) (Conn, error) {
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-a.closed:
		return nil, link.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	conn, err := a.wait(ctx)
	switch {
	case err == nil:
		return conn.(Conn), nil
	case errors.Is(err, net.ErrClosed):
		return nil, link.ErrClosed
	case ctx.Err() != nil && errors.Is(err, os.ErrDeadlineExceeded):
		return nil, ctx.Err()
	}
	return nil, err
}

// wait calls ln.Accept, and ends it at the end of ctx by a deadline in the past.
func (a *Acceptor) wait(ctx context.Context) (net.Conn, error) {
	expired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(expired)
		a.ln.SetDeadline(time.Unix(1, 0))
	})
	conn, err := a.ln.Accept()
	if !stop() {
		<-expired
		a.ln.SetDeadline(time.Time{})
	}
	return conn, err
}

// Close stops accepting. It may be called again.
func (a *Acceptor) Close() (err error) {
	a.close.Do(func() {
		close(a.closed)
		err = a.ln.Close()
	})
	return err
}
