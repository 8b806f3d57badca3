package quic

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/conn"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
	"github.com/openimpi/impi/plugins/sdk/transports/stripe"
)

const name = "quic"

var errNotConfigured = errors.New("the settings cert, key and ca are missing")

// Transport makes links over QUIC. Configure must be called before anything else; see New.
type Transport struct {
	settings atomic.Pointer[settings]

	mu        sync.Mutex
	peers     map[target][]*pooledConn
	listeners map[*listener]struct{}
	counts    counts
}

// New makes a transport without settings.
func New() *Transport {
	return &Transport{
		peers: make(map[target][]*pooledConn), listeners: make(map[*listener]struct{}),
	}
}

// Info implements transports.Transport.
func (t *Transport) Info() transports.Info {
	return transports.Info{Name: name, Version: "1", Vendor: "openimpi"}
}

// Capabilities returns the capabilities of streams that live in this process.
func (t *Transport) Capabilities() transports.Capabilities {
	return transports.Capabilities{
		DataPlanes: []transports.DataPlane{transports.PlaneRing, transports.PlaneStream, transports.PlaneGRPC},
		Features:   []transports.Feature{transports.FeatureEncrypted, transports.FeaturePeerAuth},
		Reach:      transports.ReachNetwork,
	}
}

// Dial makes a link to "ip:port", on a connection that may have others.
func (t *Transport) Dial(ctx context.Context, to transports.DialSpec) (link.Link, error) {
	s := t.settings.Load()
	if s == nil {
		return nil, socket.BadAddress(name, "dial", to.Address, errNotConfigured.Error())
	}
	address, streams, err := stripe.ParseAddress(to.Address)
	if err != nil {
		return nil, socket.BadAddress(name, "dial", to.Address, err.Error())
	}
	at, err := s.target(to, address)
	if err != nil {
		return nil, err
	}
	first, err := t.open(ctx, at, s.connections, nil)
	if err != nil {
		return nil, s.failure("dial", to.Address, err)
	}
	if streams == 1 {
		return conn.New(first), nil
	}
	c, err := t.several(ctx, at, first, streams)
	if err != nil {
		return nil, s.failure("dial", to.Address, err)
	}
	return conn.New(c), nil
}

// several makes a link's connection of first, to which others, on QUIC connections of their own,
// are added when it has carried much. There are at most most of them in all, or only first if the
// peer is near.
func (t *Transport) several(ctx context.Context, at target, first *leased, most int) (transports.Conn, error) {
	if rtt, known := first.RTT(); known && rtt < at.settings.near {
		most = 1
	}
	taken := map[*pooledConn]bool{first.pooledConn: true} // by streams of this link
	return stripe.Begin(ctx, stripe.Plan{Most: most, Dial: func(ctx context.Context, i int) (transports.Conn, error) {
		if i == 0 {
			return first, nil
		}
		return t.open(ctx, at, max(at.settings.connections, most), taken)
	}})
}

// open opens a stream on a connection that may have others, of which there may be most, and which
// is none of taken.
func (t *Transport) open(ctx context.Context, at target, most int, taken map[*pooledConn]bool) (*leased, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		l, fresh := t.enter(at, most, taken)
		x, err := l.open(ctx)
		if err == nil {
			return &leased{stream: x, pooledConn: l}, nil
		}
		l.leave()
		if fresh || ctx.Err() != nil || !stale(err) {
			return nil, err
		}
		t.drop(l) // the connection had ended before
	}
}

// target reads a DialSpec; text is its address without what is said of streams.
func (s *settings) target(to transports.DialSpec, text string) (target, error) {
	far, err := netip.ParseAddrPort(text)
	if err != nil || far.Port() == 0 {
		return target{}, socket.BadAddress(name, "dial", to.Address, `it should be "ip:port"`)
	}
	at := target{to: far, settings: s}
	if to.From == "" {
		return at, nil
	}
	if at.from, err = netip.ParseAddr(to.From); err != nil {
		return target{}, socket.BadAddress(name, "dial", to.Address, "the address to dial from, "+to.From+", is not an IP address")
	}
	if at.from.Unmap().Is4() != far.Addr().Unmap().Is4() {
		return target{}, socket.BadAddress(name, "dial", to.Address, "it cannot be reached from "+to.From+": one is IPv4, the other IPv6")
	}
	return at, nil
}

// Drain waits until the peers have taken all bytes of links that were closed here.
func (t *Transport) Drain(ctx context.Context) error {
	tick := time.NewTicker(drainTick)
	defer tick.Stop()
	for {
		links := 0
		for _, c := range t.connections() {
			links += c.leaving()
		}
		if links == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("quic: %d links that were closed here are not finished by their peers: %w", links, ctx.Err())
		case <-tick.C:
		}
	}
}

const drainTick = 5 * time.Millisecond

// Close ends all connections and listeners at once, and tells the peers.
func (t *Transport) Close() error {
	open := t.connections()
	t.mu.Lock()
	listeners := slices.Collect(maps.Keys(t.listeners))
	t.mu.Unlock()
	for _, l := range listeners {
		_ = l.Close() // always nil
	}
	for _, c := range open {
		c.close(closeEnds, "the process ends")
	}
	return nil
}

func (t *Transport) connections() (open []*connection) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, conns := range t.peers {
		for _, l := range conns {
			if c := l.connection(); c != nil {
				open = append(open, c)
			}
		}
	}
	for l := range t.listeners {
		open = append(open, l.connections()...)
	}
	return open
}
