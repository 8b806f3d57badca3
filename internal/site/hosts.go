package site

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/listen"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// Host is one IMPI host of the site, with the listeners for the channels and direct links of its
// procs.
type Host struct {
	Config  config.Host
	Index   int                 // among the hosts of the site
	Rank    wire.HostRank       // in the job; known once startup is over
	Channel transports.Listener // for the hosts of higher rank
	Direct  []*Listener         // for procs of own sites
	Card    []byte              // of each of its procs
}

// Listener is where other nodes dial.
type Listener struct {
	transports.Listener
	Host      *Host
	Transport *routes.Transport
	Plain     bool // for channels alone, also those that begin as IMPI says
}

// ChannelListener returns the listener where the host's channels arrive.
func (s *Site) ChannelListener(h *Host) *Listener {
	return &Listener{Listener: h.Channel, Host: h, Transport: s.Routes.Channels, Plain: true}
}

// Listen opens the listeners of all hosts.
func (s *Site) Listen(ctx context.Context) error {
	for i, c := range s.Routes.Site.Hosts {
		h := &Host{Config: c, Index: i}
		s.Hosts = append(s.Hosts, h)
		if err := s.listen(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

func (s *Site) listen(ctx context.Context, h *Host) (err error) {
	at := transports.ListenSpec{
		Host: h.Config.Address.String(), Port: int(h.Config.Port),
		Dir: s.Dir, Name: fmt.Sprintf("c%d", h.Index),
	}
	at.IPChannel = true
	if h.Channel, err = s.open(ctx, s.Routes.Channels, s.Routes.Channels.Transport, at); err != nil {
		return fmt.Errorf("site %s, host %v: %w", s.Routes.Site.Name, h.Config.Address, s.portError(ctx, err, h.Config))
	}
	at.IPChannel = false
	for _, t := range s.Routes.Transports {
		for k, planes := range routes.ListenerPlanes(*s.Routes.Site, t.Name, t.Capabilities().DataPlanes) {
			at.Port, at.Name = 0, fmt.Sprintf("d%d-%s", h.Index, t.Name)
			if k > 0 {
				at.Name += fmt.Sprintf("-%d", k)
			}
			l, err := s.open(ctx, t, t.WithPlanes(planes), at)
			if err != nil {
				return fmt.Errorf("site %s, host %v, direct links: %w", s.Routes.Site.Name, h.Config.Address, err)
			}
			h.Direct = append(h.Direct, &Listener{Listener: l, Host: h, Transport: t})
		}
	}
	if h.Card, err = s.card(h); err != nil {
		return fmt.Errorf("site %s, host %v: %w", s.Routes.Site.Name, h.Config.Address, err)
	}
	s.Log.Debug("listening", "channels", h.Channel.Address(), "card", string(h.Card))
	return nil
}

// open opens a listener, in the ports of the job file unless the transport has settings for that.
func (s *Site) open(ctx context.Context, t *routes.Transport, through transports.Transport, at transports.ListenSpec) (l transports.Listener, err error) {
	in := s.Routes.Site.Ports
	of, _ := s.Routes.Site.Transport(t.Name)
	if t.Machine() || of.HasRange() {
		in = config.Ports{}
	}
	err = listen.First(in, uint16(at.Port), func(port uint16) (bool, error) {
		at.Port = int(port)
		l, err = through.Listen(ctx, at)
		return inUse(ctx, err, port, at.Host, of.Bound()), err
	})
	return l, err
}

func (s *Site) card(h *Host) ([]byte, error) {
	c := dynamic.BusinessCard{
		Version: dynamic.CardVersion, Node: machine(), ByteOrder: ByteOrder(),
		Unexpected: s.Routes.Site.Protocol.Unexpected,
		Features:   routes.TrimFeatures(slices.Concat(routes.NativeFeatures(s.Routes), routes.Features(s.Routes.Job, *s.Routes.Site))),
	}
	for _, l := range h.Direct {
		c.Addresses = append(c.Addresses, dynamic.TransportAddress{Transport: l.Transport.Name, Address: l.Address()})
	}
	return c.AppendText(nil)
}

// SpareCard returns the card of a spare site, which listens nowhere: the card is not sent to other
// nodes.
func SpareCard(s *Site) *dynamic.BusinessCard {
	c := &dynamic.BusinessCard{Version: dynamic.CardVersion, Node: machine(), ByteOrder: ByteOrder()}
	for _, t := range s.Routes.Transports {
		c.Addresses = append(c.Addresses, dynamic.TransportAddress{Transport: t.Name})
	}
	return c
}

// Port returns the port that other hosts connect to.
func (h *Host) Port() (int, error) {
	a, err := netip.ParseAddrPort(h.Channel.Address())
	if err != nil {
		return 0, fmt.Errorf("channel address %q is not ip:port: %w", h.Channel.Address(), err)
	}
	return int(a.Port()), nil
}

// Close stops listening.
func (s *Site) Close() {
	for _, h := range s.Hosts {
		if h.Channel != nil {
			_ = h.Channel.Close()
		}
		for _, l := range h.Direct {
			_ = l.Close()
		}
	}
}

// ErrPortTaken is wrapped when another process has the port of a host block.
var ErrPortTaken = errors.New("the port is taken")

// portError adds to an error about a port of the file whether the port is taken.
func (s *Site) portError(ctx context.Context, err error, h config.Host) error {
	of, _ := s.Routes.Site.Transport(s.Routes.Channels.Name)
	if h.Port != 0 && inUse(ctx, err, h.Port, h.Address.String(), of.Bound()) {
		return &portTaken{err}
	}
	return err
}

// inUse reports whether err of a transport's Listen means that something else has the port, which is
// all that another port helps against. A plugin says no more than that the system has refused it, for
// whatever reason, so that the port is tried then, at each of the addresses that the transport may
// listen at.
func inUse(ctx context.Context, err error, port uint16, at ...string) bool {
	failed, ok := errors.AsType[*transports.Error](err)
	switch {
	case !ok || failed.Code != transports.CodeResource:
		return false
	case failed.Cause != nil:
		return errors.Is(failed.Cause, syscall.EADDRINUSE)
	}
	return slices.ContainsFunc(at, func(a string) bool {
		ip, err := netip.ParseAddr(a)
		return err == nil && taken(ctx, netip.AddrPortFrom(ip, port))
	})
}

// taken reports whether something has a port, by TCP or by UDP. At an address that this machine does
// not have, as behind a translation of addresses, it is the port at any address that counts.
func taken(ctx context.Context, at netip.AddrPort) bool {
	ln, tcp := listen.At(ctx, net.ListenConfig{}, at)
	if tcp == nil {
		_ = ln.Close()
	}
	datagrams, udp := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	if udp == nil {
		_ = datagrams.Close()
	}
	switch {
	case errors.Is(tcp, syscall.EADDRINUSE) || errors.Is(udp, syscall.EADDRINUSE):
		return true
	case !errors.Is(tcp, syscall.EADDRNOTAVAIL) || at.Addr().IsUnspecified():
		return false
	case at.Addr().Is4():
		return taken(ctx, netip.AddrPortFrom(netip.IPv4Unspecified(), at.Port()))
	}
	return taken(ctx, netip.AddrPortFrom(netip.IPv6Unspecified(), at.Port()))
}

// portTaken has the plugin's text, and wraps ErrPortTaken.
type portTaken struct{ error }

func (p *portTaken) Unwrap() []error { return []error{p.error, ErrPortTaken} }
