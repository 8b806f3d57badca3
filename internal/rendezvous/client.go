package rendezvous

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

// Client is a client's connection to the server while the job runs. Neither side sends
// anything until the job ends.
type Client struct {
	nc    net.Conn
	lost  chan struct{} // closed with err set
	ended chan struct{} // closed when watch has returned
	other chan error    // see LostClients

	mu sync.Mutex // guards m
	m  *startup.Client
}

// start runs startup in the caller's goroutine.
func (c *Client) start(ctx context.Context) (*startup.Job, error) {
	release := c.interruptBy(ctx)
	defer release()
	buf := make([]byte, 64<<10)
	c.m.Start(time.Now())
	for {
		c.flush()
		if job, ok := c.m.Job(); ok {
			release()
			c.nc.SetDeadline(time.Time{})
			return job, nil
		}
		at, ok := c.m.Deadline()
		if !ok {
			at = time.Time{} // none
		}
		c.nc.SetDeadline(at)
		if ctx.Err() != nil && (c.m.Waits() || !errors.Is(context.Cause(ctx), startup.ErrMoved)) {
			c.m.Fail(context.Cause(ctx))
			break
		}
		if _, failed := c.hear(buf); failed != nil {
			break
		}
	}
	release() // otherwise the deadline in the past would also keep the last message from being sent
	return nil, c.giveUp()
}

// hear reads once and passes what came to the startup.Client. more reports whether there can be
// more to read, and failed is the error of the startup.Client, if any.
func (c *Client) hear(buf []byte) (more bool, failed error) {
	n, err := c.nc.Read(buf)
	c.mu.Lock()
	defer c.mu.Unlock()
	if n > 0 {
		failed = c.m.Receive(buf[:n], time.Now())
		for said := c.m.TakeLostClient(); said != nil; said = c.m.TakeLostClient() {
			select {
			case c.other <- said:
			default: // there is room for all clients of a job
			}
		}
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		failed = c.m.Tick(time.Now())
	case err != nil:
		failed = c.m.Closed(cause(socket.Explain(c.nc, err)))
	}
	return err == nil, failed
}

// interruptBy makes the end of ctx interrupt Read and Write until release has returned.
// Only the first call of release has an effect: if ctx ended between two calls, nobody
// would close done.
func (c *Client) interruptBy(ctx context.Context) (release func()) {
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		c.nc.SetDeadline(time.Unix(1, 0))
		close(done)
	})
	return sync.OnceFunc(func() {
		if !stop() {
			<-done
		}
	})
}

// flush sends the output of the startup.Client. An error is not reported: reading finds the
// reason, and may still return the server's last message.
func (c *Client) flush() {
	if b := c.m.Output(); len(b) > 0 {
		_, _ = c.nc.Write(b)
	}
}

// giveUp closes the connection after the startup.Client has failed.
func (c *Client) giveUp() error {
	c.nc.SetDeadline(time.Now().Add(linger))
	c.flush()
	c.nc.Close()
	return c.m.Err()
}

func (c *Client) watch() {
	defer close(c.ended)
	defer c.nc.Close()
	buf := make([]byte, 4<<10)
	for {
		more, failed := c.hear(buf)
		if failed != nil {
			close(c.lost)
			return
		}
		if !more {
			return
		}
	}
}

// Lost returns a channel that is closed when the server ends the job, or its connection is lost.
// Once it is closed, Err returns the reason.
func (c *Client) Lost() <-chan struct{} { return c.lost }

// Ended returns a channel that is closed when nothing comes from the server any more: Lost is
// closed before that, unless the client has left or the server has reported to a spare site that
// the job went well.
func (c *Client) Ended() <-chan struct{} { return c.ended }

// LostClients returns a channel of the server's reports of other clients that are lost and without
// which it continues, as errors by which the job has to end if it does not run yet.
func (c *Client) LostClients() <-chan error { return c.other }

// DisconnectedSince returns since when there is no connection to the server, while it is dialled
// again, or zero if there is one, or the server is lost.
func (c *Client) DisconnectedSince() time.Time {
	if l, resumes := c.nc.(*resumableConn); resumes {
		return l.since()
	}
	return time.Time{}
}

// Renew makes the connection again with the present certificates, without a loss: the old
// connection stays until then. It returns false if that cannot be done and the connection stays as
// it is.
func (c *Client) Renew() bool {
	l, resumes := c.nc.(*resumableConn)
	if !resumes || l.renew == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.machine.Status().State < resume.Done {
		l.renew()
	}
	return true
}

// Err returns the reason why the job ended early, or nil.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.m.Err()
}

// Finish reports to the server that all procs of the client have finished, and closes the
// connection. It waits a moment at most. It returns an error if the job had failed before.
func (c *Client) Finish() error {
	return c.leave(c.m.Finish)
}

// Fail reports to the server, and through it to all clients of ours, that the job cannot continue
// and why, and closes the connection. It waits a moment at most. Lost is closed then.
func (c *Client) Fail(reason error) error {
	return c.leave(func() error {
		c.m.Fail(reason)
		return c.m.Err()
	})
}

// Abandon leaves the job without a message: the server counts this client as lost, and a job that
// can continue without lost clients does so.
func (c *Client) Abandon() {
	_ = c.leave(func() error { return nil })
}

// leave sends the last message and waits until the server has read it.
func (c *Client) leave(say func() error) error {
	c.mu.Lock()
	err := say()
	c.nc.SetDeadline(time.Now().Add(c.patience()))
	c.flush()
	c.mu.Unlock()
	closeWrite(c.nc)
	<-c.ended
	return err
}

// patience returns how long sending the last message may take. A resumable connection that is lost
// at this time is dialled again, which has a time limit of its own.
func (c *Client) patience() time.Duration {
	l, resumes := c.nc.(*resumableConn)
	switch {
	case !resumes:
		return linger / 4
	case c.m.Err() != nil:
		return linger
	}
	return l.kept + linger
}
