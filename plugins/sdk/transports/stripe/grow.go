package stripe

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/conn"
)

const (
	// growAfter is how many bytes go over the first connection before others are added: more than what
	// the first round trips of a new TCP connection carry, and less than what anybody waits for long.
	growAfter = 256 << 10
	// growTime is the maximum time to add a connection.
	growTime = 30 * time.Second
)

// growth adds connections to a stripe that was dialled. It does so once: a connection that cannot
// be had then is not tried again.
type growth struct {
	plan Plan
	id   [16]byte
}

// note counts bytes of a block, and begins to add connections once there were enough.
func (c *Conn) note(n int) {
	if c.grows == nil {
		return
	}
	if now := c.moved.Add(int64(n)); now >= growAfter && now-int64(n) < growAfter {
		c.grow()
	}
}

// grow adds the connections, in the background.
func (c *Conn) grow() {
	for i := 1; i < c.grows.plan.Most; i++ {
		if !c.reserve() {
			return
		}
		go func() {
			defer c.pending.Done()
			_ = c.addDialled(context.Background(), i) // the existing connections suffice
		}()
	}
}

// growNow adds all connections, before anything has gone over the first one.
func (c *Conn) growNow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	errs := make([]error, c.grows.plan.Most)
	for i := 1; i < len(errs); i++ {
		wg.Go(func() {
			if errs[i] = c.addDialled(ctx, i); errs[i] != nil {
				cancel() // without one connection the others are useless
			}
		})
	}
	wg.Wait()
	c.grows = nil
	return firstCause(errs)
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

func (c *Conn) addDialled(ctx context.Context, i int) error {
	ctx, cancel := context.WithTimeout(ctx, growTime)
	defer cancel()
	endWith(ctx, cancel, c.broken)
	x, err := c.dialUnlessClosed(ctx, i)
	if err != nil {
		return err
	}
	c.in.expect() // before the peer can send something there
	err = introduce(ctx, x, hello{i, c.grows.plan.Most, c.grows.id})
	if err == nil {
		c.admit(x)
		return nil
	}
	_ = x.Close() // it is not used
	c.giveUp()
	return err
}

// giveUp says that a connection that was expected does not come.
func (c *Conn) giveUp() {
	if err := c.in.expectNot(); err != nil { // the last one that could have brought what is missing
		c.fail(err)
	}
}

// dialUnlessClosed gives up when Close begins: until the hello is said the peer expects nothing.
func (c *Conn) dialUnlessClosed(ctx context.Context, i int) (transports.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	endWith(ctx, cancel, c.out.closing)
	return c.grows.plan.Dial(ctx, i)
}

// endWith calls cancel, which is that of ctx, when over is closed.
func endWith(ctx context.Context, cancel func(), over <-chan struct{}) {
	go func() {
		select {
		case <-over:
			cancel()
		case <-ctx.Done():
		}
	}()
}

// join adds a connection that was accepted and has introduced itself as h. After an error it still
// belongs to the caller.
func (c *Conn) join(ctx context.Context, h hello, x transports.Conn) error {
	if !c.reserve() {
		return ErrEnded
	}
	defer c.pending.Done()
	if err := c.claim(h); err != nil {
		return err
	}
	c.in.expect()
	if err := conn.Within(ctx, x, func() error { return welcome(x) }); err != nil {
		c.giveUp()
		return err
	}
	c.admit(x)
	return nil
}

func (c *Conn) claim(h hello) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h.count != c.most || c.claimed&(1<<h.index) != 0 {
		return fmt.Errorf("%w: connection %d of %d is there already, or there are %d", ErrProtocol, h.index, h.count, c.most)
	}
	c.claimed |= 1 << h.index
	return nil
}
