package wire

import "net/netip"

// HostIDForm is a way to write an IPv4 address in 16 bytes. IMPI 0.0 prescribes none;
// implementations use both.
type HostIDForm uint8

// The forms.
const (
	IPv4Compatible HostIDForm = iota // ::192.0.2.1, what LAM sends
	IPv4Mapped                       // ::ffff:192.0.2.1
)

// HostIDFrom returns the host ID of an address. The form matters for IPv4 only; an
// IPv4-mapped IPv6 address counts as IPv4. The zone is dropped.
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

// Addr returns the address to connect to: IPv4 for both forms, otherwise IPv6. ::1 is the
// one exception to the IPv4-compatible form: it stands for itself, since no network has
// 0.0.0.1 and every machine has ::1. The address of all zeros is invalid.
func (h HostID) Addr() netip.Addr {
	v6 := netip.AddrFrom16(h)
	if v6 == netip.IPv6Loopback() { // IsLoopback is also true for ::ffff:127.0.0.1
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

// String returns the address, or "none" for the ID of all zeros.
func (h HostID) String() string {
	if a := h.Addr(); a.IsValid() {
		return a.String()
	}
	return "none"
}
