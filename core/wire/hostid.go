package wire

import "net/netip"

// HostIDForm is one of the ways to write an IPv4 address in 16 bytes. IMPI 0.0
// mandates neither; both are in the field.
type HostIDForm uint8

// The forms.
const (
	IPv4Compatible HostIDForm = iota // ::192.0.2.1, what LAM sends
	IPv4Mapped                       // ::ffff:192.0.2.1
)

// HostIDFrom gives the host ID of an address. The form matters for IPv4 only;
// an IPv4 address inside an IPv6 one counts as IPv4. A zone is lost.
func HostIDFrom(a netip.Addr, form HostIDForm) HostID {
	a = a.Unmap()
	if !a.Is4() {
		return HostID(a.As16())
	}
	var h HostID
	v4 := a.As4()
	copy(h[12:], v4[:])
	if form == IPv4Mapped {
		h[10], h[11] = 0xff, 0xff
	}
	return h
}

// Addr gives the address to connect to: IPv4 for both embeddings, else IPv6.
// The address ::1 is the one exception to the IPv4-compatible form: no network
// has 0.0.0.1, and every machine has ::1. The address of all zeros is invalid.
func (h HostID) Addr() netip.Addr {
	v6 := netip.AddrFrom16(h)
	if v6 == netip.IPv6Loopback() { // IsLoopback is true of ::ffff:127.0.0.1 as well
		return v6
	}
	if v4, ok := h.IPv4(); ok {
		if v4 == [4]byte{} {
			return netip.Addr{}
		}
		return netip.AddrFrom4(v4)
	}
	return v6
}

// String gives the address, or "none" for the ID of all zeros.
func (h HostID) String() string {
	if a := h.Addr(); a.IsValid() {
		return a.String()
	}
	return "none"
}
