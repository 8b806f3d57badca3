package sdk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"net"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/proto"
	"github.com/openimpi/impi/plugins/sdk/proto/handover"
	"github.com/openimpi/impi/plugins/sdk/proto/pipe"
	"github.com/openimpi/impi/plugins/sdk/support/ring"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/conn"
	"github.com/openimpi/impi/plugins/sdk/transports/fabric"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

// The sizes of rings that a node may ask for.
const (
	minRing = 64 << 10
	maxRing = 16 << 20
)

// ringBytes is the size of the rings to make if the node asks for n.
func ringBytes(n uint64) uint64 {
	if n == 0 {
		return ring.DefaultSize
	}
	n = min(max(n, minRing), maxRing)
	return 1 << (bits.Len64(n) - 1)
}

// pumpRing opens the data plane "ring": the node gets one side of a ring, and this process
// passes bytes on between the other side and the connection.
func (s *server) pumpRing(ctx context.Context, id uint64, l link.Link, size int) error {
	if x, ok := l.(transports.Socket); ok {
		return s.relayRing(ctx, id, x, size)
	}
	if x, ok := l.(*fabric.Link); ok {
		c, cache, err := x.Detach()
		if err != nil {
			return err
		}
		return s.relay(ctx, id, fabric.New(c, cache), size)
	}
	far, err := connOf(l)
	if err != nil {
		return err
	}
	if direct, ok := far.(conn.Direct); ok {
		return s.relay(ctx, id, direct, size)
	}
	near, region, sock, err := conn.NearRing(size)
	if err != nil {
		conn.Break(far)
		return err
	}
	return s.attach(ctx, id, conn.NewPump(near, far), far, &handover.Record{Mode: handover.ModeRing, Side: 1, FDs: []int{region, sock}})
}

// relayRing is pumpRing for a link over a socket, whose descriptor this process reads and writes
// itself.
func (s *server) relayRing(ctx context.Context, id uint64, l transports.Socket, size int) error {
	fd, preread, err := l.Detach()
	if err != nil {
		return err
	}
	far, err := socket.New(fd, preread)
	if err != nil {
		return fmt.Errorf("a socket that cannot be passed on: %w", err)
	}
	return s.relay(ctx, id, far, size)
}

// relay is pumpRing for a connection that is polled. It owns that, even after an error.
func (s *server) relay(ctx context.Context, id uint64, far conn.Direct, size int) error {
	p, region, sock, err := conn.NewRelay(size, far)
	if err != nil {
		return err
	}
	return s.attach(ctx, id, p, far, &handover.Record{Mode: handover.ModeRing, Side: 1, FDs: []int{region, sock}})
}

// pumpRDMA opens the data plane "rdma": the node gets the proc's side of a control region, and this
// process passes messages on between it and the connection.
func (s *server) pumpRDMA(ctx context.Context, id uint64, l link.Link) error {
	c, cache, err := l.(*fabric.Link).Detach()
	if err != nil {
		return err
	}
	p, fds, err := fabric.NewPump(c, cache)
	if err != nil {
		return err
	}
	return s.attach(ctx, id, p, c, &handover.Record{Mode: handover.ModeRDMA, FDs: fds[:]})
}

// pumpSocket opens the data plane "stream", in the same way over a socket pair.
func (s *server) pumpSocket(ctx context.Context, id uint64, l link.Link) error {
	far, err := connOf(l)
	if err != nil {
		return err
	}
	near, sock, tail, err := conn.NearSocket()
	if err != nil {
		conn.Break(far)
		return err
	}
	return s.attach(ctx, id, conn.NewPump(near, far), far, &handover.Record{Mode: handover.ModeStream, FDs: []int{sock, tail}})
}

// attach sends the node its side of a pump and starts the pump.
func (s *server) attach(ctx context.Context, id uint64, p *conn.Pump, far io.Closer, r *handover.Record) error {
	if err := s.sendRecord(ctx, id, r); err != nil {
		p.Close()
		return err
	}
	go s.pumps.run(id, p, far)
	return nil
}

// Pipe serves the data plane "grpc" of one link.
func (s *server) Pipe(call grpc.BidiStreamingServer[proto.Frame, proto.Frame]) error {
	near, id, err := pipe.Accept(call)
	if err != nil {
		return err
	}
	if _, piped := s.links.get(id); !piped {
		return status.Errorf(codes.NotFound, "link %d does not wait for Pipe", id)
	}
	h := s.links.release(id)
	if h == nil {
		return status.Errorf(codes.NotFound, "link %d was closed", id)
	}
	far, err := connOf(h.link)
	if err != nil {
		_ = h.link.Close()
		return status.Errorf(codes.Internal, "link %d: %v", id, err)
	}
	p := conn.NewPump(near, far)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.pumps.run(id, p, far)
	}()
	select {
	case <-ended:
	case <-near.Broken(): // to return ends the pump's pending calls
	}
	if err := p.Err(); err != nil {
		return status.Errorf(codes.Aborted, "link %d: %v", id, err)
	}
	return nil
}

// connOf takes the connection out of a link. For a socket it is the connection that package
// net makes of it.
func connOf(l link.Link) (transports.Conn, error) {
	if x, ok := l.(transports.Piped); ok {
		return x.Detach()
	}
	fd, preread, err := l.(transports.Socket).Detach()
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "link")
	c, err := net.FileConn(f) // dups
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("a socket that cannot be passed on: %w", err)
	}
	x, ok := c.(transports.Conn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("a %T, whose bytes cannot be passed on", c), c.Close())
	}
	if len(preread) > 0 {
		return &ahead{x, preread}, nil
	}
	return x, nil
}

// ahead is a connection from which some bytes were read already.
type ahead struct {
	transports.Conn
	rest []byte
}

// Read returns the bytes that were read ahead first.
func (a *ahead) Read(b []byte) (int, error) {
	if len(a.rest) == 0 {
		return a.Conn.Read(b)
	}
	n := copy(b, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}

// NetConn returns the wrapped connection.
func (a *ahead) NetConn() net.Conn { return a.Conn }
