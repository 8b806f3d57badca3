// Package pipe is the data plane "grpc": a link's bytes in frames of the call Pipe. It has
// the two sides of a pump (package plugins/sdk/transports/conn).
package pipe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"

	"github.com/openimpi/impi/plugins/sdk/proto"
)

// MaxFrame is the most data in one frame, in bytes.
const MaxFrame = 64 << 10

// ErrFrame is wrapped when a frame has more data than MaxFrame.
var ErrFrame = errors.New("bad frame in a pipe")

// frames is either side of the call.
type frames interface {
	Send(*proto.Frame) error
	Recv() (*proto.Frame, error)
}

// half reads and writes frames as a stream. One goroutine reads, another writes.
type half struct {
	frames
	rest  []byte // unread bytes of the last frame
	ended bool   // the last frame was the end of the stream
}

// Read returns bytes of one frame. If the call ends before the end of the stream it returns
// io.ErrUnexpectedEOF, or the call's status.
func (h *half) Read(b []byte) (int, error) {
	for len(h.rest) == 0 {
		if h.ended {
			return 0, io.EOF
		}
		f, err := h.Recv()
		switch {
		case err != nil:
			return 0, cut(err)
		case len(f.GetData()) > MaxFrame:
			return 0, fmt.Errorf("%w: %d bytes, at most %d", ErrFrame, len(f.GetData()), MaxFrame)
		}
		h.rest, h.ended = f.GetData(), f.GetEnd()
	}
	n := copy(b, h.rest)
	h.rest = h.rest[n:]
	return n, nil
}

// Write sends b. When Send returns gRPC has copied it.
func (h *half) Write(b []byte) (n int, err error) {
	for len(b) > 0 {
		k := min(len(b), MaxFrame)
		if err := cut(h.Send(&proto.Frame{Data: b[:k]})); err != nil {
			return n, err
		}
		n, b = n+k, b[k:]
	}
	return n, nil
}

// CloseWrite sends the end.
func (h *half) CloseWrite() error { return cut(h.Send(&proto.Frame{End: true})) }

// cut converts the error of a call that ended before the end of the stream.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Client is the node's side of the call. It implements conn.Far.
type Client struct {
	half
	call   grpc.BidiStreamingClient[proto.Frame, proto.Frame]
	cancel context.CancelFunc
	ending sync.Once
}

// Open calls Pipe for a link. The context bounds the life of the call.
func Open(ctx context.Context, rpc proto.TransportClient, link uint64) (*Client, error) {
	ctx, cancel := context.WithCancel(ctx)
	call, err := rpc.Pipe(ctx)
	if err == nil {
		err = call.Send(&proto.Frame{LinkId: link})
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("pipe of link %d: %w", link, err)
	}
	return &Client{half: half{frames: call}, call: call, cancel: cancel}, nil
}

// Close informs the plugin that the link was closed. Bytes that were written still arrive.
func (c *Client) Close() (err error) {
	c.ending.Do(func() { err = c.call.CloseSend() })
	return err
}

// Break ends the call, upon which the plugin breaks the link. Close does nothing after it,
// since gRPC forbids CloseSend during a Send, which another goroutine may be doing.
func (c *Client) Break() {
	c.cancel()
	c.ending.Do(func() {})
}

// Finish waits until the plugin has ended the call, and releases its resources.
func (c *Client) Finish() {
	defer c.cancel()
	for {
		if _, err := c.Recv(); err != nil {
			return
		}
	}
}

// Server is the plugin's side of the call; the link's user is at the node. It implements
// conn.Near.
type Server struct {
	half
	broken chan struct{}
	once   sync.Once
	gone   atomic.Bool
}

// Accept accepts a call and returns the number of its link.
func Accept(call grpc.BidiStreamingServer[proto.Frame, proto.Frame]) (*Server, uint64, error) {
	first, err := call.Recv()
	if err != nil {
		return nil, 0, err
	}
	return &Server{half: half{frames: call}, broken: make(chan struct{})}, first.GetLinkId(), nil
}

// Outward writes the bytes from the node to w.
func (s *Server) Outward(w io.Writer) error { return pass(w, &s.half) }

// Inward sends the bytes of r to the node.
func (s *Server) Inward(r io.Reader) error { return pass(&s.half, r) }

func pass(to io.Writer, from io.Reader) error {
	_, err := io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, MaxFrame))
	return err
}

// Gone waits until the node has ended its side of the call.
func (s *Server) Gone() error {
	_, err := s.Recv()
	if !errors.Is(err, io.EOF) {
		return errors.Join(ErrFrame, err)
	}
	s.gone.Store(true)
	return nil
}

// Alive reports whether neither Gone has returned nor Break was called.
func (s *Server) Alive() bool {
	select {
	case <-s.broken:
		return false
	default:
		return !s.gone.Load()
	}
}

// Break closes the channel of Broken.
func (s *Server) Break() { s.once.Do(func() { close(s.broken) }) }

// Broken returns a channel that Break closes. The handler of the call returns then: nothing
// else ends pending calls of Recv and Send.
func (s *Server) Broken() <-chan struct{} { return s.broken }

// Close does nothing: the call ends when its handler returns.
func (s *Server) Close() error { return nil }
