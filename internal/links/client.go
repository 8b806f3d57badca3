package links

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// The ways in which a node does not answer.
var (
	ErrGone   = errors.New("the node is gone")
	ErrSilent = errors.New("the node does not answer")
)

// Ask sends a request to the control socket at path and waits for the answer
// until ctx ends, which it must.
func Ask(ctx context.Context, path string, r Request) (*Answer, error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return nil, fmt.Errorf("%w: it has no deadline", ErrRequest)
	}
	r.Version = Version
	if r.Limit == 0 { // a little less, so that what is known comes in time
		r.Limit = time.Until(deadline) * 7 / 8
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, dialFault(err)
	}
	defer c.Close()
	if err := c.SetDeadline(deadline); err != nil {
		return nil, err
	}
	if err := trust(c); err != nil {
		return nil, err
	}
	if err := json.NewEncoder(c).Encode(r); err != nil {
		return nil, ioFault(err)
	}
	var a Answer
	if err := json.NewDecoder(io.LimitReader(c, maxAnswer)).Decode(&a); err != nil {
		return nil, ioFault(err)
	}
	switch {
	case a.Error != "":
		return nil, errors.New(a.Error)
	case a.Version != Version:
		return nil, fmt.Errorf("%w: it answers in version %d, not %d", ErrRequest, a.Version, Version)
	}
	return &a, nil
}

// trust wants a node of our own user; root asks everybody.
func trust(c net.Conn) error {
	if u, ok := c.(*net.UnixConn); ok && os.Geteuid() != 0 {
		return checkPeer(u)
	}
	return nil
}

func dialFault(err error) error {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, os.ErrNotExist):
		return ErrGone
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return ErrSilent // its queue of callers is full
	}
	return err
}

func ioFault(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ErrSilent
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return ErrGone
	}
	return err
}
