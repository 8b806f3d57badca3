package socket

import (
	"context"
	"errors"
	"fmt"
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

// Accept waits for the next connection, of which nothing is to be known but that it can become a
// link by FromConn; AcceptConn returns one to talk on before that. It reports link.ErrClosed
// after Close, and the context's error when that ends first; no connection is lost then.
func (a *Acceptor) Accept(ctx context.Context) (Conn, error) {
	c, err := a.accept(ctx)
	if err != nil {
		return nil, err
	}
	return expect[Conn](c)
}

// AcceptConn is Accept for a transport that looks at addresses, or that exchanges something with
// its peer before the job's bytes. A peer may say nothing: set a deadline before the first Read,
// and Close the connection if that fails. FromConn makes a link of it afterwards, for which the
// deadline does not hold; if more was read than the peer's greeting, New does, with those bytes.
//
// The sdk calls Accept of a listener again when it has returned, so that peers wait for those
// before them: keep the deadline short, or accept in a goroutine that starts one for each peer.
func (a *Acceptor) AcceptConn(ctx context.Context) (NetConn, error) {
	c, err := a.accept(ctx)
	if err != nil {
		return nil, err
	}
	return expect[NetConn](c)
}

// expect returns a connection as what it must be, or closes it.
func expect[C any](c net.Conn) (C, error) {
	x, ok := c.(C)
	if !ok {
		return x, errors.Join(fmt.Errorf("the listener gives a %T, which has no descriptor: make links of connections inside the process by conn.New", c), c.Close())
	}
	return x, nil
}

func (a *Acceptor) accept(ctx context.Context) (net.Conn, error) {
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
		return conn, nil
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
