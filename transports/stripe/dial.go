package stripe

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/openimpi/impi/transports"
)

// Dial makes a stripe of count connections, which dial makes at the same time, and waits until the
// peer has them all (Groups.Accept). After an error all are closed; it is that of a dial if one has
// failed.
func Dial(ctx context.Context, count int, dial func(ctx context.Context, i int) (transports.Conn, error)) (*Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conns, errs := make([]transports.Conn, count), make([]error, count)
	var wg sync.WaitGroup
	for i, h := range hellos(count) {
		wg.Go(func() {
			if conns[i], errs[i] = dial(ctx, i); errs[i] == nil {
				errs[i] = within(ctx, conns[i], func() error { return h.say(conns[i]) })
			}
			if errs[i] != nil {
				cancel() // the others have no use without it
			}
		})
	}
	wg.Wait()
	err := firstCause(errs)
	if err == nil {
		err = within(ctx, conns[0], func() error { return await(conns[0]) })
	}
	if err != nil {
		for _, c := range conns {
			if c != nil {
				_ = c.Close() // the error is reported already
			}
		}
		return nil, err
	}
	return New(conns), nil
}

// firstCause returns the error because of which the others were given up.
func firstCause(errs []error) (first error) {
	for _, err := range errs {
		if err != nil && (first == nil || errors.Is(first, context.Canceled)) {
			first = err
		}
	}
	return first
}

// within makes a call on a connection, which ends with the context.
func within(ctx context.Context, c net.Conn, call func() error) error {
	expired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(expired)
		_ = c.SetDeadline(time.Unix(1, 0)) // fails if it is closed
	})
	err := call()
	if !stop() {
		<-expired
		return errors.Join(ctx.Err(), err)
	}
	return err
}
