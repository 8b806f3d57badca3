package config

import (
	"net/netip"
	"slices"
	"strings"
)

// place is where a host or a listener is: an address, or a name whose address config is told.
type place struct {
	addr     netip.Addr
	name     string // instead of addr
	port     uint16
	listener bool // it has a port
}

// at gives the address, with the port of a listener, as a netip.Addr or a netip.AddrPort. The
// address of a name that nobody has looked up is the zero one.
func (p place) at(addresses map[string]netip.Addr) any {
	addr := p.addr
	if p.name != "" {
		addr = addresses[p.name].Unmap()
	}
	if p.name == "localhost" && !addr.IsValid() {
		addr = loopbackAny.Addr() // RFC 6761: a look-up has nothing to add
	}
	if p.listener {
		return netip.AddrPortFrom(addr, p.port)
	}
	return addr
}

// isHostName tells names from faulty addresses: the last part of a name is no number (RFC 1123,
// 2.1). Underscores are allowed, which hosts of containers have.
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
	Pos  Pos // of what it is the place of
}

// Unknown gives the names whose addresses a node of the site must know and Options.Addresses
// has not: those of its hosts and its head, of the job's server, and of that of names.
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
	add(s.Server.Name, s.Server.Address.Addr(), s.Server.Pos)
	add(s.Names.ServerName, s.Names.Server.Addr(), s.Names.Pos)
	return names
}

// hostsKnown reports whether the addresses of all hosts are known.
func (s *Site) hostsKnown() bool {
	return !slices.ContainsFunc(s.Hosts, func(h Host) bool { return !h.Address.IsValid() })
}
