package rendezvous

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/transports/socket"
)

// Session is a client's connection to the server while the job runs. Nothing
// is said on it until one side has a reason to.
type Session struct {
	nc    net.Conn
	lost  chan struct{} // closed with err set
	ended chan struct{} // watch has returned

	mu sync.Mutex // guards m
	m  *startup.Client
}

// start goes through startup in the caller's goroutine.
func (s *Session) start(ctx context.Context) (*startup.Job, error) {
	release := s.interruptBy(ctx)
	defer release()
	buf := make([]byte, 64<<10)
	s.m.Start(time.Now())
	for {
		s.flush()
		if job, ok := s.m.Job(); ok {
			release()
			s.nc.SetDeadline(time.Time{})
			return job, nil
		}
		if at, ok := s.m.Deadline(); ok {
			s.nc.SetDeadline(at)
		}
		if ctx.Err() != nil {
			s.m.Fail(context.Cause(ctx))
			break
		}
		if _, failed := s.hear(buf); failed != nil {
			break
		}
	}
	release() // a deadline in the past would keep the last words back too
	return nil, s.giveUp()
}

// hear reads once and tells the machine what came of it. It gives whether more
// can be read, and the error by which the machine has failed, if it has.
func (s *Session) hear(buf []byte) (more bool, failed error) {
	n, err := s.nc.Read(buf)
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > 0 {
		failed = s.m.Receive(buf[:n], time.Now())
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		failed = s.m.Tick(time.Now())
	case err != nil:
		failed = s.m.Closed(cause(socket.Explain(s.nc, err)))
	}
	return err == nil, failed
}

// interruptBy lets the end of ctx interrupt Read and Write. When release has
// returned, it does not any more. Only the first call of release does anything:
// the context may end between two of them, and then nobody would close done.
func (s *Session) interruptBy(ctx context.Context) (release func()) {
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		s.nc.SetDeadline(time.Unix(1, 0))
		close(done)
	})
	return sync.OnceFunc(func() {
		if !stop() {
			<-done
		}
	})
}

// flush sends what the machine wants to say. If that fails, reading will tell
// why: the server's last words may still be there.
func (s *Session) flush() {
	if b := s.m.Output(); len(b) > 0 {
		_, _ = s.nc.Write(b)
	}
}

// giveUp closes a connection on which the machine has failed.
func (s *Session) giveUp() error {
	s.nc.SetDeadline(time.Now().Add(linger))
	s.flush()
	s.nc.Close()
	return s.m.Err()
}

// watch waits for the end of the connection and reads what the server says.
func (s *Session) watch() {
	defer close(s.ended)
	defer s.nc.Close()
	buf := make([]byte, 4<<10)
	for {
		more, failed := s.hear(buf)
		if failed != nil {
			close(s.lost)
			return
		}
		if !more {
			return
		}
	}
}

// Lost is closed when the server ends the job, or its connection is lost. Err
// says why then.
func (s *Session) Lost() <-chan struct{} { return s.lost }

// Err returns the reason why the job ended early, or nil.
func (s *Session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.m.Err()
}

// Finish tells the server that all procs of the client have finished, and
// closes. It waits a moment at most. It reports a job that had failed before.
func (s *Session) Finish() error {
	return s.leave(s.m.Finish)
}

// Fail tells the server, and through it all clients of ours, that the job
// cannot go on and why, and closes. It waits a moment at most. Lost is closed.
func (s *Session) Fail(reason error) error {
	return s.leave(func() error {
		s.m.Fail(reason)
		return s.m.Err()
	})
}

// leave says the last words and waits until they are read.
func (s *Session) leave(say func() error) error {
	s.mu.Lock()
	err := say()
	s.nc.SetDeadline(time.Now().Add(s.patience()))
	s.flush()
	s.mu.Unlock()
	closeWrite(s.nc)
	<-s.ended
	return err
}

// patience is how long the last words may take. Where the connection is resumed, they are not
// lost because it is cut just then: it ends by itself when there is no hope.
func (s *Session) patience() time.Duration {
	l, resumes := s.nc.(*resumableConn)
	switch {
	case !resumes:
		return linger / 4
	case s.m.Err() != nil:
		return linger
	}
	return l.kept + linger
}
