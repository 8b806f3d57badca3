package conn

import (
	"context"
	"errors"
	"net"
	"time"
)

// Within makes a call that reads from or writes to a connection, and ends the call with the
// context. If the context has ended the call, the error includes the context's error, and the
// connection has a deadline in the past.
func Within(ctx context.Context, c net.Conn, call func() error) error {
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
