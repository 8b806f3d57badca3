package config

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// place is where a host or a listener is: an address, or a name whose address is in
// Options.Addresses.
type place struct {
	addr     netip.Addr
	name     string // host name, used instead of addr
	port     uint16
	listener bool // the place includes a port
}

// at returns the address as a netip.Addr or, with a listener's port, a netip.AddrPort. A name
// that nobody has looked up has the zero address.
func (p place) at(addresses map[string]netip.Addr) any {
	addr := p.addr
	if p.name != "" {
		addr = addresses[p.name].Unmap()
	}
	if p.name == "localhost" && !addr.IsValid() {
		addr = loopbackAny.Addr() // loopback without a look-up (RFC 6761)
	}
	if p.listener {
		return netip.AddrPortFrom(addr, p.port)
	}
	return addr
}

// isHostName reports whether s is a host name, and not an address with a fault: the last part of a
// name is not a number (RFC 1123, 2.1). Underscores are allowed, as names of containers have them.
func isHostName(s string) bool {
	s = strings.TrimSuffix(s, ".")
	parts := strings.Split(s, ".")
	for _, part := range parts {
		if part == "" || len(part) > 63 || strings.ContainsFunc(part, outsideName) || part[0] == '-' || part[len(part)-1] == '-' {
			return false
		}
	}
	return len(s) <= 253 && strings.Trim(parts[len(parts)-1], "0123456789") != ""
}

func outsideName(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
}

// HostName is a host name in a job file.
type HostName struct {
	Name string
	Pos  Pos // of the block or attribute that has the name
}

// Unknown returns the names whose addresses a node of the site must know and that
// Options.Addresses lacks: those of its hosts and its head, of the job's server, and of the name
// server.
func (s *Site) Unknown() (names []HostName) {
	add := func(name string, addr netip.Addr, pos Pos) {
		if name != "" && !addr.IsValid() {
			names = append(names, HostName{name, pos})
		}
	}
	if s.Foreign {
		return nil
	}
	for _, h := range s.Hosts {
		add(h.Name, h.Address, h.Pos)
	}
	add(s.HeadName, s.Head.Addr(), s.Pos)
	for _, x := range s.Server.All() {
		add(x.Name, x.Address.Addr(), s.Server.Pos)
	}
	add(s.Names.ServerName, s.Names.Server.Addr(), s.Names.Pos)
	return names
}

func (s *Site) hostsKnown() bool {
	return !slices.ContainsFunc(s.Hosts, func(h Host) bool { return !h.Address.IsValid() })
}

// Network selects the address that a machine uses for the links of its procs, if not the address in
// the file, which may be that of the DNS, the scheduler or a slower network. The zero Network means
// the address in the file.
type Network struct {
	Prefix    netip.Prefix // an address in this range
	Interface string       // or an address of the network interface with this name
}

// Interface is an address that a machine has.
type Interface struct {
	Name    string // such as "eth0"
	Address netip.Addr
}

// String returns the network in the form of a job file.
func (n Network) String() string {
	return cmp.Or(n.Interface, n.Prefix.String())
}

// Choose returns the address that a host uses, out of all addresses of its machine. known is the
// address by which the file names the host, and is chosen if it is in the network. Otherwise the
// machine must have exactly one address there, or exactly one IPv4 address beside IPv6 ones.
func (n Network) Choose(known netip.Addr, all []Interface) (netip.Addr, error) {
	if n == (Network{}) || n.Prefix.IsValid() && n.Prefix.Contains(known) {
		return known, nil
	}
	var found []netip.Addr
	for _, x := range all {
		a := x.Address.Unmap()
		if n.Prefix.IsValid() && n.Prefix.Contains(a.WithZone("")) || n.Interface == x.Name && !a.IsLinkLocalUnicast() {
			found = append(found, a)
		}
	}
	if slices.Contains(found, known) {
		return known, nil
	}
	if four := slices.DeleteFunc(slices.Clone(found), netip.Addr.Is6); len(four) > 0 {
		found = four
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		var has []string
		for _, x := range all {
			if !x.Address.IsLoopback() && !x.Address.IsLinkLocalUnicast() {
				has = append(has, fmt.Sprintf("%s has %v", x.Name, x.Address))
			}
		}
		return known, fmt.Errorf("this machine has no address in the site's network %v: %s; correct network, or take it out", n, strings.Join(has, ", "))
	}
	return known, fmt.Errorf("this machine has several addresses in the site's network %v: %v; write the one to use as the host's address, or a narrower network", n, found)
}

func network() kind {
	return written("a network or the name of a network interface", `"10.77.0.0/16" or "eth1"`, func(s string) (any, *wrong) {
		if p, err := netip.ParsePrefix(s); err == nil {
			if p != p.Masked() {
				return nil, &wrong{problem: quote(s) + " has bits set beyond its prefix", remedy: "write " + quote(p.Masked().String()), element: -1}
			}
			return Network{Prefix: p}, nil
		}
		_, notAddress := netip.ParseAddr(s)
		// The kernel's rule for names of interfaces.
		return matched(Network{Interface: s}, notAddress != nil && s != "" && len(s) < 16 && s != "." && s != ".." && !strings.ContainsAny(s, "/: \t\n"))
	})
}
