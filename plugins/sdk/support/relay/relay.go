// Package relay is the near side of a link whose bytes pass through another process, a
// transport plugin: data planes "rdma", "ring", "stream" and "grpc" (docs/plugin-protocol.md). It
// distinguishes an end of stream that the peer has sent from the death of the plugin and
// from a broken connection behind it.
package relay

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/support/rdma"
	"github.com/openimpi/impi/plugins/sdk/support/ring"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// Link is the proc's side of a link whose bytes a plugin passes on. It implements
// transports.Relayed.
type Link struct {
	end    atomic.Pointer[end] // nil after Close, so that its memory can be freed
	limits link.Limits
	plane  transports.DataPlane
	via    string // name of the transport
	dead   bool   // Send has noticed that the plugin is dead
}

func newLink(e end, plane transports.DataPlane, via string) *Link {
	l := &Link{limits: e.Limits(), plane: plane, via: via}
	l.end.Store(&e)
	return l
}

// end is this side of a data plane.
type end interface {
	link.Link

	// alive reports whether the plugin still has its side; for data planes where Send
	// cannot notice that.
	alive() bool
	// whole reports whether the peer has sent the end of the stream.
	whole() bool
	// detach gives up the link: see Link.Detach.
	detach() (fds []int, side int, err error)
}

// NewRing makes a link of one side of a region (package ring); a plugin of the transport
// via passes the bytes on at the other side. It owns both descriptors, even after an error.
func NewRing(region, sock, side int, via string) (*Link, error) {
	l, err := ring.NewDetachable(region, sock, side)
	if err != nil {
		return nil, fmt.Errorf("plugin of transport %s: %w", via, err)
	}
	return newLink(ringEnd{l}, transports.PlaneRing, via), nil
}

// NewStream makes a link of a socket whose bytes are passed on by a plugin of the transport
// via (plane "stream") or, for it, by the node (plane "grpc"). tail is the reading end of a
// pipe into which that process writes a byte before an end of stream that the peer has
// sent. NewStream owns both descriptors, even after an error.
func NewStream(sock, tail int, plane transports.DataPlane, via string) (*Link, error) {
	e, err := newStreamEnd(sock, tail)
	if err != nil {
		return nil, fmt.Errorf("plugin of transport %s: %w", via, err)
	}
	return newLink(e, plane, via), nil
}

// Lending is a Link by data plane "rdma", which can lend memory of the proc. Its Plane is "rdma".
type Lending struct {
	*Link
	end *rdma.Link
}

// NewRDMA makes a link of the proc's side of a control region (package rdma); a plugin of the
// transport via has the other one. It owns the descriptors, even after an error. regions is memory
// that may be lent; nil: none.
func NewRDMA(region, sock, channel int, via string, regions *rdma.Regions) (*Lending, error) {
	l, err := rdma.New(region, sock, channel, regions)
	if err != nil {
		return nil, fmt.Errorf("plugin of transport %s: %w", via, err)
	}
	return &Lending{newLink(rdmaEnd{l}, transports.PlaneRDMA, via), l}, nil
}

// Lend implements link.Lender.
func (l *Lending) Lend(batch [][]byte) (int, error) {
	n, err := l.end.Lend(batch)
	return n, l.explain(err)
}

// Recall implements link.Recaller.
func (l *Lending) Recall() { l.end.Recall() }

// Plane returns "rdma", "ring", "stream" or "grpc".
func (l *Link) Plane() transports.DataPlane { return l.plane }

// Detach gives up the link and returns what another process needs to continue it: the
// arguments of NewRing, NewStream or NewRDMA. The caller owns the descriptors. No other call may be
// in progress. After an error the link is closed.
func (l *Link) Detach() (fds []int, side int, err error) {
	e := l.end.Swap(nil)
	if e == nil {
		return nil, 0, link.ErrClosed
	}
	if fds, side, err = (*e).detach(); err != nil {
		return nil, 0, errors.Join(err, (*e).Close())
	}
	return fds, side, nil
}

// Send takes as much as there is room for.
func (l *Link) Send(batch [][]byte) (int, error) {
	e := l.end.Load()
	if e == nil {
		return 0, link.ErrClosed
	}
	n, err := (*e).Send(batch)
	if err == nil && n == 0 && link.Len(batch) > 0 && !l.dead {
		l.dead = !(*e).alive()
	}
	if err == nil && l.dead {
		return 0, l.explain(link.ErrBroken)
	}
	return n, l.explain(err)
}

// Recv implements link.Link. An end of stream that the peer has not sent is link.ErrBroken.
func (l *Link) Recv(batch [][]byte) (int, error) {
	e := l.end.Load()
	if e == nil {
		return 0, link.ErrClosed
	}
	n, err := (*e).Recv(batch)
	if err == io.EOF && !(*e).whole() { //nolint:errorlint // a link reports it bare
		err = link.ErrBroken
	}
	return n, l.explain(err)
}

// Handle returns the socket, or NoHandle after Close.
func (l *Link) Handle() int {
	if e := l.end.Load(); e != nil {
		return (*e).Handle()
	}
	return link.NoHandle
}

// Arm announces that the caller is about to sleep on Handle.
func (l *Link) Arm(want link.Interest) bool {
	e := l.end.Load()
	return e == nil || (*e).Arm(want)
}

// Limits returns the limits of the ring or the socket.
func (l *Link) Limits() link.Limits { return l.limits }

// CloseSend ends this side's stream.
func (l *Link) CloseSend() error {
	e := l.end.Load()
	if e == nil {
		return link.ErrClosed
	}
	return l.explain((*e).CloseSend())
}

// Close ends both directions. The plugin still passes on what was sent.
func (l *Link) Close() error {
	if e := l.end.Swap(nil); e != nil {
		return (*e).Close()
	}
	return nil
}

// explain names the plugin in the error of a broken link. If another goroutine has closed
// the link meanwhile, a call in progress sees a broken link, too.
func (l *Link) explain(err error) error {
	switch {
	case !errors.Is(err, link.ErrBroken):
		return err
	case l.end.Load() == nil:
		return link.ErrClosed
	case errors.Is(err, ring.ErrRegion), errors.Is(err, rdma.ErrRules):
		return fmt.Errorf("%w: the plugin of transport %s has broken the rules of data plane %s: %w", link.ErrBroken, l.via, l.plane, err)
	}
	return fmt.Errorf("%w: the plugin of transport %s, which passes its bytes on (data plane %s), has died or has lost the connection", link.ErrBroken, l.via, l.plane)
}

// Counts returns how many bytes went over this side, if it is counted. No other
// call may be in progress.
func (l *Link) Counts() (sent, received uint64) {
	if e := l.end.Load(); e != nil {
		if c, ok := (*e).(interface {
			Counts() (sent, received uint64)
		}); ok {
			return c.Counts()
		}
	}
	return 0, 0
}
