// Package tcp is the transport over TCP/IP, the one that the standard mandates.
// Its links are plain kernel sockets and its addresses "ip:port", so it also
// makes the channels to foreign hosts.
package tcp

import (
	"context"
	"net"
	"net/netip"
	"sync/atomic"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/transports"
	"github.com/openimpi/impi/transports/socket"
)

const name = "tcp"

// Transport makes TCP links. Its zero value is not usable; see New.
type Transport struct {
	settings atomic.Pointer[settings]
}

// New makes a transport with the default settings.
func New() *Transport {
	t := &Transport{}
	if err := t.Configure(transports.Defaults(schema)); err != nil {
		panic("tcp: its own defaults: " + err.Error())
	}
	return t
}

// Info names the transport.
func (t *Transport) Info() transports.Info {
	return transports.Info{Name: name, Version: "1", Vendor: "openimpi"}
}

// Capabilities are those of a kernel socket between IP addresses.
func (t *Transport) Capabilities() transports.Capabilities {
	return transports.Capabilities{
		DataPlanes: []transports.DataPlane{transports.PlaneFD, transports.PlaneStream},
		Features:   []transports.Feature{transports.FeatureIPChannel},
		Reach:      transports.ReachNetwork,
	}
}

// Dial connects to "ip:port", from the address that the caller asks for: peers
// tell hosts apart by the address that a connection comes from.
func (t *Transport) Dial(ctx context.Context, to transports.DialSpec) (link.Link, error) {
	dialer, err := t.settings.Load().dialer(to)
	if err != nil {
		return nil, err
	}
	conn, err := dialer.DialContext(ctx, "tcp", to.Address)
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, socket.Failure(name, "dial", to.Address, err)
	}
	l, err := t.settings.Load().link(conn.(*net.TCPConn))
	if err != nil {
		return nil, socket.Failure(name, "dial", to.Address, err)
	}
	return l, nil
}

// dialer has the settings of one Dial, or says what is wrong with to.
func (s *settings) dialer(to transports.DialSpec) (*net.Dialer, error) {
	far, err := netip.ParseAddrPort(to.Address)
	if err != nil || far.Port() == 0 {
		return nil, socket.BadAddress(name, "dial", to.Address, `it should be "ip:port"`)
	}
	d := &net.Dialer{KeepAlive: -1, Control: s.control}
	d.SetMultipathTCP(false)
	if to.From != "" {
		from, err := netip.ParseAddr(to.From)
		if err != nil {
			return nil, socket.BadAddress(name, "dial", to.Address, "the address to dial from, "+to.From+", is not an IP address")
		}
		if from.Unmap().Is4() != far.Addr().Unmap().Is4() {
			return nil, socket.BadAddress(name, "dial", to.Address, "it cannot be reached from "+to.From+": one is IPv4, the other IPv6")
		}
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))
		d.Control = s.controlBound
	}
	return d, nil
}
