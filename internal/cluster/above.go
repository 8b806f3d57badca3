package cluster

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/openimpi/impi/core/membership"
	"github.com/openimpi/impi/internal/cluster/neighbour"
	"github.com/openimpi/impi/internal/rpc"
	"github.com/openimpi/impi/internal/rpc/auth"
	"github.com/openimpi/impi/internal/rpc/proto"
)

// The pauses between two attempts to connect, and the maximum time without an answer from a port
// that is open: an address that cannot be reached is reported within 5 s.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = time.Second
	reach      = 4 * time.Second
)

// above is a host's connection to its parent.
type above struct {
	h      *Host
	host   int // the parent
	out    *queue[*proto.Up]
	link   *uplink
	client proto.ClusterClient
	fails  []byte        // a report: why this host cannot be part of the site; nil: it can
	lost   bool          // nothing can be sent or received any more; Host's mu guards it
	heard  chan struct{} // closed when nothing more is received
	renew  chan struct{} // has an element if a new connection should replace this one

	mu     sync.Mutex // guards output
	output proto.Cluster_WriteClient
}

// tell sends a message up. It does not block.
func (a *above) tell(w *proto.Up) { a.out.add(w) }

// connect finds the parent and connects to it. It tries again only after errors that may go away.
func (a *above) connect(ctx context.Context) error {
	h := a.h
	var silence silence
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := a.attach(ctx)
		if err == nil {
			return nil
		}
		var refused *refusedByParent
		if mute, ok := errors.AsType[*unreached](err); ok && silence.lasts(mute) && ctx.Err() == nil {
			switch {
			case mute.host != 0 && a.fails == nil && h.cfg.Report != nil:
				a.fails = h.cfg.Report(fmt.Errorf("%w: %s", err, Remedy))
				continue
			case mute.host == 0 && h.cfg.HeadListens:
				return &unfit{a.cannot(fmt.Errorf("%w: let this host reach that port, or write head = \"ADDRESS:PORT\" with one that it reaches in the site block", err))}
			case !silence.told:
				silence.told = true
				h.log.Warn("no answer within "+reach.String()+": start impi-node there; if it runs, open that port to this host, or write head = \"ADDRESS:PORT\" with one that it reaches in the site block", "reason", err)
			}
		}
		switch code := status.Code(err); {
		case errors.As(err, &refused) && a.fails == nil && h.cfg.Report != nil:
			a.fails = h.cfg.Report(err)
			continue // retry at the head, which must get the report
		case errors.Is(err, ErrSecret):
			return &unfit{a.cannot(fmt.Errorf("%w; copy the key's file to both", err))}
		case errors.Is(err, ErrVersion), errors.Is(err, ErrCertificate), code == codes.FailedPrecondition:
			return &unfit{a.cannot(err)}
		case errors.Is(err, ErrOver), code == codes.Aborted:
			return a.cannot(err)
		}
		h.log.Debug("the head cannot be reached yet", "address", h.cfg.Head, "reason", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return a.cannot(fmt.Errorf("%w (%w)", err, context.Cause(ctx)))
		}
	}
}

// Remedy is the advice where a host cannot reach its parent.
const Remedy = "in a site of many hosts, some accept connections of others at free TCP ports: remove firewalls between them, or choose their addresses by network = \"10.77.0.0/16\" in the site block"

// unreached says that no connection was made to the head, host 0, or to a parent that has said
// where it listens.
type unreached struct {
	host  int
	began time.Time // when the attempt began
	error
}

func (u *unreached) Unwrap() error { return u.error }

type silence struct {
	host  int
	since time.Time
	told  bool // the failure was logged
}

// lasts counts a failed attempt, and reports whether the host has been unreachable for at least
// reach.
func (s *silence) lasts(u *unreached) bool {
	if s.since.IsZero() || s.host != u.host {
		s.host, s.since = u.host, u.began
	}
	return time.Since(s.since) >= reach
}

func (c *Config) reach(ctx context.Context, host int, address string) (net.Conn, error) {
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, reach)
	defer cancel()
	nc, err := c.Dial(limited, address)
	if err != nil {
		from, _, _ := net.SplitHostPort(c.Listen)
		return nil, &unreached{host, began, fmt.Errorf("host %s at %s was not reached from %s: %w", c.Name(host), address, from, err)}
	}
	return nc, nil
}

// refusedByParent is the error if this host, or a parent that is not the head, does not accept the
// other one. The head does not know of it.
type refusedByParent struct{ error }

func (r *refusedByParent) Unwrap() error { return r.error }

// unfit is an ErrUnfit that says more.
type unfit struct{ error }

func (u *unfit) Unwrap() []error { return []error{u.error, ErrUnfit} }

func (a *above) cannot(err error) error {
	h := a.h
	if s, ok := status.FromError(err); ok {
		err = errors.New(s.Message())
	}
	return fmt.Errorf("host %s cannot join its site, whose head is at %s: %w", h.cfg.Name(h.cfg.Self), h.cfg.Head, err)
}

// uplink is a connection to a host above on which both ends have proved that they know the secret.
type uplink struct {
	conn *rpc.Conn // conn.Peer is the error why this host rejects the peer's certificate; nil: accepted
	rpc  *grpc.ClientConn
	id   [idSize]byte // of the connection, for those that replace it
	at   string       // address where the other host listens
}

// dial makes a connection. asked is called when the other end wants it to be made anew.
func (c *Config) dial(ctx context.Context, host int, address string, asked func()) (*uplink, error) {
	u := &uplink{at: address}
	_, _ = rand.Read(u.id[:]) // never fails
	safe, err := c.greet(ctx, host, address, prefaceNew, u.id)
	if err != nil {
		return nil, err
	}
	u.conn = rpc.NewConn(rpc.NewReplaceableConn(safe, asked), safe.Refused)
	if u.rpc, err = rpc.Client(u.conn, maxWord); err != nil {
		return nil, errors.Join(err, u.conn.Close())
	}
	return u, nil
}

// greet connects, proves the secret and says what the connection is for.
func (c *Config) greet(ctx context.Context, host int, address string, what byte, id [idSize]byte) (*auth.Conn, error) {
	nc, err := c.reach(ctx, host, address)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, greeting)
	defer cancel()
	safe, err := kind.Connect(limited, nc, auth.Keys{Key: c.Secret, Identity: c.Identity})
	if err == nil {
		_, err = safe.Write(append([]byte{what}, id[:]...))
	}
	if err != nil {
		return nil, errors.Join(err, nc.Close())
	}
	return safe, nil
}

// attach asks the head for the parent and connects to that.
func (a *above) attach(ctx context.Context) (err error) {
	h := a.h
	if a.link, err = h.cfg.dial(ctx, 0, h.cfg.Head, a.wantsRenewal); err != nil {
		a.seeks(0)
		return err
	}
	a.seeks(a.host)
	a.client = proto.NewClusterClient(a.link.rpc)
	if err := a.judge(0); err != nil && a.fails == nil {
		if h.cfg.Report == nil {
			a.hangUp()
			return err
		}
		a.fails = h.cfg.Report(err)
	}
	hello := &proto.Newcomer{Host: int32(h.cfg.Self), Version: h.cfg.Version, File: h.cfg.File, Plugins: h.cfg.Plugins, Fails: a.fails}
	at, err := a.client.Place(ctx, hello)
	if err != nil {
		a.hangUp()
		if ctx.Err() != nil {
			err = fmt.Errorf("host %s, its parent, has not joined: %w", h.cfg.Name(a.host), ctx.Err())
		}
		return err
	}
	if at.GetEnded() {
		a.hangUp()
		h.cfg.Owner.JobEnded(at.GetOver())
		return ErrOver
	}
	if at.GetAddress() != "" {
		a.hangUp()
		if a.link, err = h.cfg.dial(ctx, a.host, at.GetAddress(), a.wantsRenewal); err != nil {
			return fmt.Errorf("its parent: %w", err)
		}
		if err := a.judge(a.host); err != nil {
			a.hangUp()
			return &refusedByParent{err}
		}
		a.client = proto.NewClusterClient(a.link.rpc)
	}
	stream, err := a.client.Attach(h.ctx)
	if err == nil {
		err = stream.Send(&proto.Up{Word: &proto.Up_Hello{Hello: hello}})
	}
	if err == nil {
		_, err = stream.Recv() // the first beat: the parent has accepted this host
	}
	if err != nil {
		a.hangUp()
		if status.Code(err) == codes.FailedPrecondition && a.host != 0 {
			return &refusedByParent{errors.New(status.Convert(err).Message())}
		}
		return err
	}
	h.with(func(m *membership.Member, now time.Time) { m.Join(now) })
	if h.ln != nil {
		a.tell(&proto.Up{Word: &proto.Up_Listens{Listens: &proto.Listens{Host: int32(h.cfg.Self), Address: h.ln.Addr().String()}}})
	}
	h.wg.Go(func() {
		_ = a.out.drain(stream.Context().Done(), stream.Send)
		_ = stream.CloseSend()
	})
	h.wg.Go(func() { a.hear(stream) })
	h.wg.Go(a.renews)
	return nil
}

// judge returns an error if this host does not accept the certificate of the host other at the
// other end of the connection.
func (a *above) judge(other int) error {
	if why, refused := a.link.conn.Peer.(error); refused {
		return a.h.cfg.notAccepted(a.h.cfg.Self, other, why)
	}
	return nil
}

func (c *Config) notAccepted(by, of int, why error) error {
	return fmt.Errorf("%w: %s does not accept that of %s: %s; impi-node cert show tells what each has, impi-node cert issue makes a new one", ErrCertificate, c.Name(by), c.Name(of), c.Identity.Explain(why))
}

func (a *above) seeks(host int) {
	if a.h.cfg.Seeks != nil {
		a.h.cfg.Seeks(host)
	}
}

func (a *above) hangUp() {
	_ = a.link.rpc.Close()
	_ = a.link.conn.Close() // gRPC may not have taken it over yet
}

func (a *above) hear(stream proto.Cluster_AttachClient) {
	defer close(a.heard)
	for {
		w, err := stream.Recv()
		if err != nil {
			if s := status.Convert(err); errors.Is(err, io.EOF) || s.Code() == codes.Unavailable || s.Code() == codes.Canceled {
				err = errors.New("its connection has ended")
			} else {
				err = errors.New(s.Message())
			}
			a.h.with(func(m *membership.Member, now time.Time) { m.Disconnected(a.host, err, now) })
			a.h.cfg.Owner.Stop()
			return
		}
		a.h.fromParent(w)
	}
}

// fromParent handles a message from above, here and for the hosts below.
func (h *Host) fromParent(w *proto.Down) {
	var forBelow bool
	h.with(func(m *membership.Member, now time.Time) {
		forBelow = neighbour.FromParent(m, h.up.host, w, now)
		if _, over := w.GetWord().(*proto.Down_Over); over {
			h.ended = true
			h.fail(ErrOver)
		}
	})
	if forBelow {
		h.tellBelow(w)
	}
	switch x := w.GetWord().(type) {
	case *proto.Down_Job:
		h.mu.Lock()
		defer h.mu.Unlock()
		select {
		case <-h.started:
		default:
			h.job = x.Job
			close(h.started)
		}
	case *proto.Down_Over:
		h.cfg.Owner.JobEnded(x.Over)
	case *proto.Down_Signal:
		h.cfg.Owner.Signal(int(x.Signal))
	case *proto.Down_Stop:
		h.cfg.Owner.Stop()
	case *proto.Down_Asks, *proto.Down_Answer:
		h.fromHead(w)
	}
}

// write sends output up. It blocks while the head cannot write it.
func (a *above) write(o *proto.Output) (err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.output == nil {
		if a.output, err = a.client.Write(a.h.ctx); err != nil {
			return err
		}
	}
	return a.output.Send(o)
}

// leave tells the parent that nothing more comes, once all output is written or ctx has ended.
func (a *above) leave(ctx context.Context) {
	if a.link == nil {
		return // this host was never connected
	}
	a.h.mu.Lock()
	lost := a.lost
	a.h.mu.Unlock()
	if lost {
		a.hangUp()
		return
	}
	written := make(chan struct{})
	go func() { // a write may hold mu for as long as the head cannot write
		defer close(written)
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.output != nil {
			_, _ = a.output.CloseAndRecv()
		}
	}()
	select {
	case <-written:
	case <-ctx.Done():
	}
	a.tell(&proto.Up{Word: &proto.Up_Bye{Bye: &proto.Nothing{}}})
	a.out.end()
	select {
	case <-a.heard:
	case <-ctx.Done():
	}
	a.hangUp()
}

func (a *above) read(ctx context.Context) io.Reader {
	s, err := a.client.Read(ctx, &proto.Nothing{})
	return &reader{stream: s, err: err}
}

type reader struct {
	stream proto.Cluster_ReadClient
	rest   []byte
	err    error
}

func (r *reader) Read(b []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		var x *proto.Input
		if x, r.err = r.stream.Recv(); r.err == nil {
			r.rest = x.GetData()
		}
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// stream is a Writer of a host that is not the head.
type stream struct {
	h     *Host
	error bool
}

// Write sends lines to the head's standard output or error. It blocks while the head cannot
// write.
func (s stream) Write(b []byte) (n int, err error) {
	for n < len(b) {
		part := b[n:min(n+chunk, len(b))]
		if end := bytes.LastIndexByte(part, '\n') + 1; n+len(part) < len(b) && end > 0 {
			part = part[:end]
		}
		if err := s.h.write(&proto.Output{Host: int32(s.h.cfg.Self), Error: s.error, Lines: part}); err != nil {
			return n, err
		}
		n += len(part)
	}
	return n, nil
}

// Stdout returns the job's standard output, on whichever machine the head is. Lines that are
// written in one call stay together.
func (h *Host) Stdout() io.Writer { return stream{h, false} }

// Stderr returns the job's standard error.
func (h *Host) Stderr() io.Writer { return stream{h, true} }

// Stdin returns the job's standard input. One host of the site reads it.
func (h *Host) Stdin() io.Reader { return h.input(h.ctx) }
