// Package tcp is the transport over TCP/IP, which the standard mandates (IMPI ch.3,
// Mandated Properties). Its links are plain kernel sockets and its addresses "ip:port", so
// it also makes the channels to foreign hosts. With TLS it does not, since foreign hosts do
// not speak TLS; the links then live in the plugin's process.
package tcp

import (
	"context"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

const name = "tcp"

// Transport makes TCP links. Its zero value is not usable; see New.
type Transport struct {
	settings atomic.Pointer[settings]
	waiting  *socket.Waiting // accepted connections of all listeners that are not links yet
}

// New makes a transport with the default settings.
func New() *Transport {
	t := &Transport{waiting: socket.NewWaiting(1)}
	if err := t.Configure(transports.Defaults(schema)); err != nil {
		panic("tcp: its own defaults: " + err.Error())
	}
	return t
}

// Info implements transports.Transport.
func (t *Transport) Info() transports.Info {
	return transports.Info{Name: name, Version: "1", Vendor: "openimpi"}
}

// Capabilities returns the capabilities of a kernel socket between IP addresses, or of TLS.
func (t *Transport) Capabilities() transports.Capabilities {
	s := t.settings.Load()
	c := transports.Capabilities{
		DataPlanes: []transports.DataPlane{transports.PlaneFD, transports.PlaneStream},
		Reach:      transports.ReachNetwork,
	}
	through := []transports.DataPlane{transports.PlaneRing, transports.PlaneStream, transports.PlaneGRPC} // this process
	switch {
	case s.id != nil:
		c.DataPlanes = through
		c.Features = []transports.Feature{transports.FeatureEncrypted, transports.FeaturePeerAuth}
	case s.streams > 1:
		c.DataPlanes = append([]transports.DataPlane{transports.PlaneFD}, through...)
	}
	switch {
	case s.id != nil || len(s.also) > 0:
	case s.streams > 1:
		c.Features = []transports.Feature{transports.FeatureIPChannelIfAsked}
	default:
		c.Features = []transports.Feature{transports.FeatureIPChannel}
	}
	return c
}

// Health returns an error if the certificate is about to expire.
func (t *Transport) Health() error { return t.settings.Load().id.Health() }

// Dial connects to "ip:port", from the address that the caller asks for, because peers
// distinguish hosts by the address that a connection comes from. Of several addresses,
// separated by commas, it uses the one that answers first. If the address says that a link may have
// several connections, the others are dialled to the addresses in turn, once the link has carried
// much.
func (t *Transport) Dial(ctx context.Context, to transports.DialSpec) (link.Link, error) {
	s := t.settings.Load()
	list, streams, err := parseAddresses(to)
	if err != nil {
		return nil, err
	}
	from, err := parseFrom(to, list)
	if err != nil {
		return nil, err
	}
	near := ctx
	if end, ok := ctx.Deadline(); ok { // earlier, so that the caller learns that no machine answers
		var cancel context.CancelFunc
		near, cancel = context.WithTimeout(ctx, time.Until(end)*3/4)
		defer cancel()
	}
	raw, err := race(near, list, func(ctx context.Context, far netip.AddrPort) (*net.TCPConn, error) {
		return s.connect(ctx, from, far)
	})
	if err != nil {
		if near.Err() == nil {
			return nil, s.failure("dial", to.Address, err)
		}
		e := s.failure("dial", to.Address, near.Err())
		if ctx.Err() == nil {
			e.Code, e.Reason = transports.CodeUnreachable, "no answer in time; a firewall may drop what is sent there"
		}
		return nil, e
	}
	return s.dialledLink(ctx, raw, list, streams, to.Address)
}

// parseFrom reads the address to dial from. At least one of the peer's addresses must be of
// its family.
func parseFrom(to transports.DialSpec, list []netip.AddrPort) (from netip.Addr, err error) {
	if to.From == "" {
		return from, nil
	}
	if from, err = netip.ParseAddr(to.From); err != nil {
		return from, socket.BadAddress(name, "dial", to.Address, "the address to dial from, "+to.From+", is not an IP address")
	}
	for _, far := range list {
		if sameFamily(from, far.Addr()) {
			return from, nil
		}
	}
	return from, socket.BadAddress(name, "dial", to.Address, "it cannot be reached from "+to.From+": one is IPv4, the other IPv6")
}

func sameFamily(a, b netip.Addr) bool { return a.Unmap().Is4() == b.Unmap().Is4() }

// connect connects to one address. If that is not of from's family, the kernel chooses the
// address to dial from.
func (s *settings) connect(ctx context.Context, from netip.Addr, far netip.AddrPort) (*net.TCPConn, error) {
	d := &net.Dialer{KeepAlive: -1, Control: s.control}
	d.SetMultipathTCP(false)
	if from.IsValid() && sameFamily(from, far.Addr()) {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))
		d.Control = s.controlBound
	}
	c, err := d.DialContext(ctx, "tcp", far.String())
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}
