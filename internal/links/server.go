package links

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/openimpi/impi/internal/rpc"
	"github.com/openimpi/impi/internal/rpc/proto"
)

// ErrRequest is wrapped by the error for a request that is not valid.
var ErrRequest = errors.New("links: bad request")

// ErrOtherUser is wrapped by the error for a peer of another user.
var ErrOtherUser = errors.New("links: peer of another user")

// Server is a node's control socket.
type Server struct {
	proto.UnimplementedControlServer
	rpc    *grpc.Server
	handle func(context.Context, Request) Answer
	work   sync.WaitGroup
}

// Serve opens the control socket at path and answers requests by handle, from several
// goroutines, until Close. It accepts only this process's user and root. The context of
// handle ends when the answer is not needed any more.
func Serve(path string, handle func(context.Context, Request) Answer) (*Server, error) {
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("control socket: %w", err), ln.Close())
	}
	s := &Server{handle: handle, rpc: rpc.NewServer(rpc.Limits{Request: maxRequest, Greet: requestLimit, Silence: serveLimit, Idle: requestLimit})}
	proto.RegisterControlServer(s.rpc, s)
	s.work.Go(func() { _ = s.rpc.Serve(&listener{UnixListener: ln, slots: make(chan struct{}, maxAsking)}) }) // until Close
	return s, nil
}

// closeLimit is how long Close waits for handlers, whose context has ended. One that still runs may
// be in a call of the system, as at a file of a machine that does not answer, and must not keep the
// node.
const closeLimit = 5 * time.Second

// Close removes the socket and ends all requests; it returns soon.
func (s *Server) Close() {
	waitFor(closeLimit, func() {
		s.rpc.Stop()
		s.work.Wait()
	})
}

// Drain waits until requests in progress have been answered, for limit at most, and closes the
// server.
func (s *Server) Drain(limit time.Duration) {
	waitFor(limit, s.rpc.GracefulStop)
	s.Close()
}

// waitFor waits until f has returned, for limit at most.
func waitFor(limit time.Duration, f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(limit):
	}
}

type listener struct {
	*net.UnixListener
	slots chan struct{}
}

// Accept returns a connection with the result of checkPeer.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.AcceptUnix()
	if err != nil {
		return nil, err
	}
	l.slots <- struct{}{} // Close ends connections that have a slot
	conn := rpc.NewConn(c, checkPeer(c))
	conn.OnClose = func() { <-l.slots }
	return conn, nil
}

// Ask answers a question. The handler gets a slightly earlier deadline, so that its partial
// result comes in time.
func (s *Server) Ask(ctx context.Context, q *proto.Question) (*proto.Report, error) {
	if refused, _ := rpc.PeerOf(ctx).(error); refused != nil {
		return nil, status.Error(codes.PermissionDenied, refused.Error())
	}
	limit := serveLimit
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(deadline)*7/8)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	b, err := json.Marshal(s.handle(ctx, Request{
		Op: Op(q.Op), All: q.All, AllUpTo: int(q.Few), Local: int(q.Local), Peer: int(q.Peer), Transport: q.Transport, Force: q.Force, Host: q.Host,
		Number: int(q.Number), Here: q.Here, Sites: q.Sites, Calls: q.Calls, Account: q.Account,
		Log: q.Log, ByHost: q.ByHost,
	}))
	return &proto.Report{Json: b}, err
}

// checkPeer refuses peers that are neither this user nor root. The directory's mode does
// that already, unless somebody has changed it.
func checkPeer(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Ucred
	var cerr error
	err = raw.Control(func(fd uintptr) { cred, cerr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err := errors.Join(err, cerr); err != nil {
		return fmt.Errorf("%w: its credentials: %w", ErrOtherUser, err)
	}
	return judgePeer(cred.Uid, uint32(os.Geteuid()))
}

// judgePeer accepts our own user and root. A node of root, which may read everything,
// accepts only root.
func judgePeer(peer, self uint32) error {
	if peer == self || peer == 0 {
		return nil
	}
	return fmt.Errorf("%w: user %d; this is user %d's", ErrOtherUser, peer, self)
}
