package node

import (
	"context"
	"fmt"
	"net/netip"
	"sync/atomic"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/node/routes"
	"github.com/openimpi/impi/internal/packetswitch"
	"github.com/openimpi/impi/transports"
)

// ownHost is one IMPI host of the site: a place where channels arrive, and the
// procs behind it.
type ownHost struct {
	config    config.Host
	index     int                  // among the hosts of the site
	channel   transports.Listener  // for the hosts of higher rank
	direct    []directListener     // for procs of our own sites
	card      []byte               // of each of its procs
	rank      wire.HostRank        // known once startup is over
	loop      *packetswitch.Switch // once the dance is over
	running   bool                 // the loop is
	resumable []*channel           // that resume
	noBoard   string               // why its procs have no board; empty: they have one

	danced  chan struct{}          // closed when making channels has begun
	dancing atomic.Pointer[dancer] // while channels are made

	finished chan struct{} // closed when all is switched and every channel has ended
}

// directListener is where other nodes dial for direct links.
type directListener struct {
	transports.Listener
	h     *ownHost
	t     *routes.Transport
	hosts bool // it is where channels are made as IMPI has it, and for nothing else
}

func (h *ownHost) channelListener(n *node) directListener {
	return directListener{Listener: h.channel, h: h, t: n.routes.Channels, hosts: true}
}

// listen opens the listeners of all hosts.
func (n *node) listen(ctx context.Context) error {
	for i, c := range n.opt.Site.Hosts {
		h := &ownHost{config: c, index: i, danced: make(chan struct{}), finished: make(chan struct{})}
		n.hosts = append(n.hosts, h)
		if err := n.listenHost(ctx, h, i); err != nil {
			return err
		}
	}
	return nil
}

func (n *node) listenHost(ctx context.Context, h *ownHost, i int) (err error) {
	at := transports.ListenSpec{
		Host: h.config.Address.String(), Port: int(h.config.Port),
		Dir: n.dir.Path, Name: fmt.Sprintf("c%d", i),
	}
	if h.channel, err = n.routes.Channels.Listen(ctx, at); err != nil {
		return fmt.Errorf("site %s, host %v: %w", n.opt.Site.Name, h.config.Address, portError(err, h.config.Port))
	}
	for _, t := range n.routes.Transports {
		for k, planes := range routes.ListenerPlanes(n.opt.Site, t.Name, t.Capabilities().DataPlanes) {
			at.Port, at.Name = 0, fmt.Sprintf("d%d-%s", i, t.Name)
			if k > 0 {
				at.Name += fmt.Sprintf("-%d", k)
			}
			l, err := t.Through(planes).Listen(ctx, at)
			if err != nil {
				return fmt.Errorf("site %s, host %v, direct links: %w", n.opt.Site.Name, h.config.Address, err)
			}
			h.direct = append(h.direct, directListener{Listener: l, h: h, t: t})
		}
	}
	if h.card, err = n.card(h); err != nil {
		return fmt.Errorf("site %s, host %v: %w", n.opt.Site.Name, h.config.Address, err)
	}
	n.log.Debug("listening", "channels", h.channel.Address(), "card", string(h.card))
	return nil
}

// card is the business card of a host's procs.
func (n *node) card(h *ownHost) ([]byte, error) {
	c := dynamic.Card{
		Version: dynamic.CardVersion, Node: n.machine, ByteOrder: byteOrder(),
		Unexpected: n.opt.Site.Protocol.Unexpected,
		Features:   routes.Features(n.opt.Job, n.opt.Site),
	}
	for _, l := range h.direct {
		c.Offers = append(c.Offers, dynamic.Offer{Transport: l.t.Name, Address: l.Address()})
	}
	return c.AppendText(nil)
}

// port is the port that other hosts connect to.
func (h *ownHost) port() (int, error) {
	a, err := netip.ParseAddrPort(h.channel.Address())
	if err != nil {
		return 0, fmt.Errorf("channel address %q is not ip:port: %w", h.channel.Address(), err)
	}
	return int(a.Port()), nil
}

// closeListeners stops listening.
func (n *node) closeListeners() {
	for _, h := range n.hosts {
		if h.channel != nil {
			_ = h.channel.Close()
		}
		for _, l := range h.direct {
			_ = l.Close()
		}
	}
}
