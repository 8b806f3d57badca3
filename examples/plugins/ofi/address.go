package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
)

const maxAddress = 600

// text is the address of an endpoint as peers dial it: "ofi://[ip]:port/provider" where endpoints
// have such, and "ofi:provider/hexadecimal" otherwise. All IP addresses are written in the form of
// IPv6: nobody is to take one for a place that can be reached through a relay, since providers
// know endpoints by their addresses.
func (f *fabric) text(blob []byte) string {
	provider := f.offer.provider
	if at, ok := addrPort(blob); ok && (f.offer.format == formatIP4 || f.offer.format == formatIP6) {
		return "ofi://" + netip.AddrPortFrom(netip.AddrFrom16(at.Addr().As16()), at.Port()).String() + "/" + provider
	}
	return "ofi:" + provider + "/" + hex.EncodeToString(blob)
}

// addrPort reads a socket address as libfabric gives it.
func addrPort(b []byte) (at netip.AddrPort, ok bool) {
	if len(b) < 8 {
		return at, false
	}
	port := uint16(b[2])<<8 | uint16(b[3])
	var ip netip.Addr
	switch len(b) {
	case 16:
		ip, ok = netip.AddrFromSlice(b[4:8])
	case 28:
		ip, ok = netip.AddrFromSlice(b[8:24])
	}
	return netip.AddrPortFrom(ip, port), ok
}

// blobOf is the inverse of addrPort.
func blobOf(at netip.AddrPort) []byte {
	ip := at.Addr().Unmap()
	if ip.Is4() {
		a := ip.As4()
		return append([]byte{2, 0, byte(at.Port() >> 8), byte(at.Port()), a[0], a[1], a[2], a[3]}, make([]byte, 8)...)
	}
	a := ip.As16()
	b := append([]byte{10, 0, byte(at.Port() >> 8), byte(at.Port()), 0, 0, 0, 0}, a[:]...)
	return append(b, 0, 0, 0, 0)
}

type target struct {
	provider string
	blob     []byte
	at       netip.AddrPort // if it has one
}

// parseAddress reads an address, which may come from anybody.
func parseAddress(text string) (t target, err error) {
	wrong := errors.New(`it should be like "ofi://[::ffff:192.0.2.1]:7800/tcp;ofi_rxm" or "ofi:shm/" and hexadecimal digits`)
	rest, ok := strings.CutPrefix(text, "ofi:")
	if !ok || len(text) > maxAddress {
		return t, wrong
	}
	where, provider, ok := strings.Cut(strings.TrimPrefix(rest, "//"), "/")
	if strings.HasPrefix(rest, "//") {
		if t.at, err = netip.ParseAddrPort(where); err != nil || !ok || t.at.Port() == 0 || t.at.Addr().IsUnspecified() || t.at.Addr().Zone() != "" {
			return t, wrong
		}
		t.provider, t.blob = provider, blobOf(t.at)
		return t, nil
	}
	if t.blob, err = hex.DecodeString(provider); err != nil || !ok || len(t.blob) == 0 || len(t.blob) > maxBlob {
		return t, wrong
	}
	t.provider = where
	return t, nil
}

// source returns the address of this machine from which one is reached.
func source(to netip.AddrPort) (string, error) {
	c, err := net.Dial("udp", to.String()) // nothing is sent
	if err != nil {
		return "", err
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).IP.String(), nil
}

// shown returns text for an error message: it may be anything, of any length.
func shown(text string) string { return fmt.Sprintf("%.100q", text) }
