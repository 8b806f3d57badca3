package unproved

import "net/netip"

// Source is where a connection comes from, as far as limits are concerned. The zero value
// stands for all connections without an address.
type Source struct{ net netip.Prefix }

// siteBits is the length of the part of an IPv6 address that a machine cannot choose
// freely.
const siteBits = 64

// From returns the source of an address: the address itself, or the network of 64
// bits that it is in for IPv6, where a machine has as many addresses as it likes.
func From(a netip.Addr) Source {
	a = a.Unmap().WithZone("")
	bits := a.BitLen()
	if a.Is6() && !a.IsLoopback() {
		bits = siteBits
	}
	p, err := a.Prefix(bits)
	if err != nil {
		return Source{} // no address
	}
	return Source{p}
}

// FromAddr is From for an address as package net has it, "ip:port". Others, such as
// those of Unix sockets, have no source.
func FromAddr(a interface{ String() string }) Source {
	p, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return Source{}
	}
	return From(p.Addr())
}

func (s Source) String() string {
	switch {
	case !s.net.IsValid():
		return "no address"
	case s.net.IsSingleIP():
		return s.net.Addr().String()
	}
	return s.net.String()
}
