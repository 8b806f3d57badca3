package main

import "net"

// advertised returns the address that clients on other machines can use. A server
// that listens everywhere prints the address from which this machine would talk
// to others, as far as it has one.
func advertised(a net.Addr) string {
	t, ok := a.(*net.TCPAddr)
	if !ok || !t.IP.IsUnspecified() {
		return a.String()
	}
	out := *t
	out.IP = net.IPv4(127, 0, 0, 1)
	if ip := outward(); ip != nil {
		out.IP = ip
	}
	return out.String()
}

func isLoopback(a net.Addr) bool {
	t, ok := a.(*net.TCPAddr)
	return ok && t.IP.IsLoopback()
}

// outward returns the first global address of an interface that is up, IPv4 if
// there is one: older clients know nothing else.
func outward() net.IP {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var first net.IP
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		if !ok || !n.IP.IsGlobalUnicast() {
			continue
		}
		if n.IP.To4() != nil {
			return n.IP
		}
		if first == nil {
			first = n.IP
		}
	}
	return first
}
