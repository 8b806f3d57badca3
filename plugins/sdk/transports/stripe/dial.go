package stripe

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/conn"
)

// Dial makes a stripe of count connections, which dial makes at the same time, and waits until the
// peer has them all (Groups.Accept). If count is 1 it returns the connection itself. After an error all
// are closed; it is that of a dial if one has failed.
func Dial(ctx context.Context, count int, dial func(ctx context.Context, i int) (transports.Conn, error)) (transports.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conns, errs := make([]transports.Conn, count), make([]error, count)
	var wg sync.WaitGroup
	for i, h := range hellos(count) {
		wg.Go(func() {
			if conns[i], errs[i] = dial(ctx, i); errs[i] == nil {
				errs[i] = givenUp(ctx, conn.Within(ctx, conns[i], func() error { return h.say(conns[i]) }))
			}
			if errs[i] != nil {
				cancel() // the others have no use without it
			}
		})
	}
	wg.Wait()
	err := firstCause(errs)
	if err == nil {
		err = givenUp(ctx, conn.Within(ctx, conns[0], func() error { return await(conns[0]) }))
	}
	if err != nil {
		for _, c := range conns {
			if c != nil {
				_ = c.Close() // the error is reported already
			}
		}
		return nil, err
	}
	return whole(conns), nil
}

// givenUp says of an error of a connection that was there what it means.
func givenUp(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil || errors.Is(err, ErrProtocol) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrGivenUp, err)
}

// whole makes one connection of all.
func whole(conns []transports.Conn) transports.Conn {
	if len(conns) == 1 {
		return conns[0]
	}
	return New(conns)
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
