package links

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// ErrRequest is wrapped by the error for a request that nobody can answer.
var ErrRequest = errors.New("links: bad request")

// ErrStranger is wrapped by the error for a peer of another user.
var ErrStranger = errors.New("links: peer of another user")

// Server is a node's control socket.
type Server struct {
	ln     *net.UnixListener
	handle func(context.Context, Request) Answer
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
}

// Serve opens the control socket at path and answers by handle, from several
// goroutines, until Close. Only this process's user and root are heard. The
// context of handle ends when the answer is of no use any more.
func Serve(path string, handle func(context.Context, Request) Answer) (*Server, error) {
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("control socket: %w", err), ln.Close())
	}
	s := &Server{ln: ln, handle: handle}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.work.Go(s.accept)
	return s, nil
}

// Close removes the socket and waits until nobody is served any more, which
// it does not let take long.
func (s *Server) Close() {
	s.cancel()
	_ = s.ln.Close()
	s.work.Wait()
}

func (s *Server) accept() {
	slots := make(chan struct{}, maxAsking)
	for {
		c, err := s.ln.AcceptUnix()
		switch {
		case s.ctx.Err() != nil:
			if err == nil {
				_ = c.Close()
			}
			return
		case err != nil: // descriptors are short: it may be better soon
			select {
			case <-time.After(100 * time.Millisecond):
			case <-s.ctx.Done():
			}
			continue
		}
		select {
		case slots <- struct{}{}:
		case <-s.ctx.Done():
		}
		s.work.Go(func() {
			defer func() { <-slots }()
			s.serve(c)
		})
	}
}

// serve answers one request.
func (s *Server) serve(c *net.UnixConn) {
	defer func() { _ = c.Close() }()
	stop := context.AfterFunc(s.ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	a := s.answer(c)
	a.Version = Version
	_ = c.SetWriteDeadline(time.Now().Add(serveLimit))
	if s.ctx.Err() == nil {
		_ = json.NewEncoder(c).Encode(a) // who has gone does not need it
	}
}

func (s *Server) answer(c *net.UnixConn) Answer {
	if err := c.SetReadDeadline(time.Now().Add(requestLimit)); err != nil {
		return Answer{Error: err.Error()}
	}
	r, err := readRequest(c)
	if perr := checkPeer(c); perr != nil { // after reading: who is cut off while it writes hears nothing
		return Answer{Error: perr.Error()}
	}
	if err != nil {
		return Answer{Error: err.Error()}
	}
	limit := serveLimit
	if r.Limit > 0 {
		limit = min(limit, r.Limit)
	}
	ctx, cancel := context.WithTimeout(s.ctx, limit)
	defer cancel()
	return s.handle(ctx, r)
}

// readRequest reads one line.
func readRequest(from io.Reader) (r Request, err error) {
	line, err := bufio.NewReader(io.LimitReader(from, maxRequest)).ReadBytes('\n')
	if err != nil {
		return r, fmt.Errorf("%w: no line of at most %d bytes: %w", ErrRequest, maxRequest, err)
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return r, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	if r.Version != Version {
		return r, fmt.Errorf("%w: version %d, this node has %d: ask with the impi-node that the job runs with", ErrRequest, r.Version, Version)
	}
	return r, nil
}

// checkPeer refuses whoever is neither this user nor root. The directory's mode
// does so already; this is for one that somebody has opened.
func checkPeer(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Ucred
	var cerr error
	err = raw.Control(func(fd uintptr) { cred, cerr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err := errors.Join(err, cerr); err != nil {
		return fmt.Errorf("%w: its credentials: %w", ErrStranger, err)
	}
	return judgePeer(cred.Uid, uint32(os.Geteuid()))
}

// judgePeer trusts ourselves and root; root, who may read everything, trusts
// nobody else to ask him.
func judgePeer(peer, self uint32) error {
	if peer == self || peer == 0 {
		return nil
	}
	return fmt.Errorf("%w: user %d; this is user %d's", ErrStranger, peer, self)
}
