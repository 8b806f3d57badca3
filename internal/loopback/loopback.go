// Package loopback gives tests ports that nobody else takes between the moment they are
// chosen and the moment they are used.
package loopback

import (
	"net"
	"net/netip"
	"os"
)

// Address is an address of this machine that only this process uses, 127.64.0.0 to
// 127.127.255.255 by its number. Connections to it come from 127.0.0.1, so that who dials
// it before anybody listens cannot get connected with itself either.
func Address() netip.Addr {
	pid := os.Getpid()
	return netip.AddrFrom4([4]byte{127, 64 | byte(pid>>16)&63, byte(pid >> 8), byte(pid)})
}

// Free returns a port of Address that nobody listens on.
func Free() (netip.AddrPort, error) {
	l, err := net.Listen("tcp", netip.AddrPortFrom(Address(), 0).String())
	if err != nil {
		return netip.AddrPort{}, err
	}
	at := netip.MustParseAddrPort(l.Addr().String())
	return at, l.Close()
}
