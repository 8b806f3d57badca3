package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
)

// spinTime is for how long a link is polled before its user sleeps, as in procs.
const spinTime = 20 * time.Microsecond

// await sleeps until a link may be as wanted, or the context ends. It may return early.
func await(ctx context.Context, l link.Link, want link.Interest) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if l.Arm(want) {
		return nil
	}
	fd := l.Handle()
	if fd == link.NoHandle {
		return nil // closed: the next call returns the error
	}
	p := []unix.PollFd{{Fd: int32(fd)}}
	if want&link.Readable != 0 {
		p[0].Events |= unix.POLLIN
	}
	if want&link.Writable != 0 {
		p[0].Events |= unix.POLLOUT
	}
	if _, err := unix.Poll(p, 50); err != nil && !errors.Is(err, unix.EINTR) {
		return err
	}
	return nil
}

func move(ctx context.Context, l link.Link, call func([][]byte) (int, error), want link.Interest, b []byte) error {
	batch := [][]byte{nil}
	var since time.Time
	for len(b) > 0 {
		batch[0] = b
		n, err := call(batch)
		if err != nil {
			return err
		}
		if b = b[n:]; n > 0 {
			since = time.Time{}
			continue
		}
		if since.IsZero() {
			since = time.Now()
		}
		if time.Since(since) < spinTime {
			continue
		}
		if err := await(ctx, l, want); err != nil {
			return err
		}
	}
	return nil
}

func send(ctx context.Context, l link.Link, b []byte) error {
	return move(ctx, l, l.Send, link.Writable, b)
}

func receive(ctx context.Context, l link.Link, b []byte) error {
	return move(ctx, l, l.Recv, link.Readable, b)
}

func exchange(ctx context.Context, a, b link.Link) error {
	for _, way := range [][2]link.Link{{a, b}, {b, a}} {
		if err := send(ctx, way[0], []byte("are you there?")); err != nil {
			return err
		}
		got := make([]byte, 14)
		if err := receive(ctx, way[1], got); err != nil {
			return err
		}
		if string(got) != "are you there?" {
			return fmt.Errorf("%q came: %w", got, io.ErrUnexpectedEOF)
		}
	}
	return nil
}
