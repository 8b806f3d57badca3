package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// loopbackAny is where an embedded server listens by default.
var loopbackAny = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 0)

// servers decides where the job's one server is and tells each site of ours.
//
// The job block's embedded server lives in the node of the lowest client of ours, and one in a site
// block in that site's node. Every other site that does not name a server itself dials it.
func (b *builder) servers() {
	home, embedded := b.embeddedServer()
	if b.job != nil {
		b.checkManner(b.job)
	}
	b.complete(embedded)
	for _, s := range b.ours() {
		b.checkManner(s.block)
		switch {
		case s == home:
			s.serve(embedded)
		case s.block.dials():
			s.dial(s.block, embedded)
		case b.job.dials():
			s.dial(b.job, nil) // an embedded server in addition was reported
		case home != nil:
			s.Server = Server{Pos: embedded.pos, Ours: true, TLS: requirement(embedded)}
			s.Server.at("listen", embedded)
		default:
			b.fault(s.Pos, "site "+quote(s.Name)+" does not say where the job's server is",
				`add server = "127.0.0.1:7800", or embedded_server {} to run it here`)
		}
	}
}

func (b *builder) embeddedServer() (home *siteDraft, embedded *block) {
	if embedded = b.job.only("embedded_server"); embedded != nil {
		home = b.lowest()
		b.notBoth(b.job)
	}
	for _, s := range b.ours() {
		in := s.block.only("embedded_server")
		if in == nil {
			continue
		}
		b.notBoth(s.block)
		if embedded != nil {
			b.fault(in.pos, "a job has one server, and line "+itoa(embedded.pos.Line)+" embeds it already",
				"keep one of the two")
			continue
		}
		home, embedded = s, in
		if b.job.dials() {
			b.fault(in.pos, "the job block says already that the server is elsewhere", "keep one of the two")
		}
	}
	return home, embedded
}

func (b *builder) notBoth(in *block) {
	if in.dials() {
		b.fault(in.only("embedded_server").pos, in.title()+" has a server elsewhere and an embedded one",
			"keep server or embedded_server")
	}
}

func (b *builder) lowest() *siteDraft {
	var low *siteDraft
	for _, s := range ourMembers(b) {
		if low == nil || s.Client < low.Client {
			low = s
		}
	}
	return low
}

// complete finds out whether the file describes the whole job: it does if it
// describes two or more sites of ours, or as many sites as its server expects.
func (b *builder) complete(embedded *block) {
	clients, counted := get[int64](embedded, "clients")
	switch {
	case len(ourMembers(b)) > 1:
		b.result.Complete = true
	case counted:
		b.result.Complete = int(clients) == len(members(b))
	default:
		b.result.Complete = embedded != nil && !embedded.has("clients") && len(members(b)) > 0
	}
	few := counted && int(clients) < len(members(b))
	if few || (counted && b.result.Complete && int(clients) != len(members(b))) {
		b.fault(embedded.at("clients"), "the server waits for "+plural(int(clients), "client")+
			", and the file describes "+plural(len(members(b)), "site"),
			"write clients = "+itoa(len(members(b)))+", or leave it out")
	}
}

func (s *siteDraft) serve(embedded *block) {
	s.Server = Server{
		Embedded: true,
		Clients:  int(pick(int64(len(members(s.builder))), "clients", embedded)),
		Timeout:  s.timeout(),
		Pos:      embedded.pos,
		Ours:     true,
		TLS:      requirement(embedded),
	}
	s.Server.at("listen", embedded)
}

func (s *Server) at(attribute string, in *block) {
	s.Address, s.Name = pick(loopbackAny, attribute, in), nameIn(attribute, in)
}

// requirement returns the require_tls of the block that names or embeds the server.
func requirement(in *block) ServerTLS {
	switch yes, said := get[bool](in, "require_tls"); {
	case !said:
		return TLSUnsaid
	case yes:
		return TLSRequired
	}
	return TLSOptional
}

// checkManner reports attributes about the protocol of a block's server if the block has no server,
// or if they contradict each other.
func (b *builder) checkManner(in *block) {
	for _, name := range []string{"require_tls", "server_foreign"} {
		if in.has(name) && !in.dials() {
			b.fault(in.at(name), in.title()+" has "+name+" and no server: it says how that server is spoken to",
				`add server = "ADDRESS:PORT"; for a server that is embedded write require_tls in embedded_server, and for links in a route`)
		}
	}
	if in.has("server") && in.has("servers") {
		b.fault(in.at("servers"), in.title()+" has server and servers", "keep servers, with the address of server in it")
	}
	if in.has("servers") && pick(false, "server_foreign", in) {
		b.fault(in.at("servers"), "a server of another MPI does not let a site go to another server", "write server with one address, or remove server_foreign")
	}
	if pick(false, "server_foreign", in) && pick(false, "require_tls", in) {
		b.fault(in.at("require_tls"), "a server of another MPI does not speak TLS", "remove require_tls, or server_foreign")
	}
}

// dials reports whether a block says where a server is.
func (b *block) dials() bool { return b.has("server") || b.has("servers") }

func (b *block) serverAt() (Pos, bool) {
	if b.has("server") {
		return b.at("server"), true
	}
	return b.at("servers"), b.has("servers")
}

// dial takes the server attribute of block in, or the list of servers, and compares it with the
// server that the file embeds elsewhere, if it does.
func (s *siteDraft) dial(in, embedded *block) {
	address, ok := get[netip.AddrPort](in, "server")
	s.Server = Server{Address: address, Name: nameIn("server", in), Foreign: pick(false, "server_foreign", in), TLS: requirement(in)}
	s.Server.Pos, _ = in.serverAt()
	for i, p := range pick([]place(nil), "servers", in) {
		x := ServerAddress{p.at(s.opt.Addresses).(netip.AddrPort), p.name}
		if i > 0 {
			s.Server.Standby = append(s.Server.Standby, x)
		} else {
			s.Server.Address, s.Server.Name = x.Address, x.Name
		}
	}
	if embedded != nil && in.has("servers") {
		s.fault(s.Server.Pos, "the server of this job is the embedded one of line "+itoa(embedded.pos.Line),
			"remove servers: the site finds the embedded server by itself")
		return
	}
	if !ok || embedded == nil {
		return
	}
	var home Server
	home.at("listen", embedded)
	known := address.Addr().IsValid() && home.Address.Addr().IsValid()
	if home.Address.Port() != address.Port() || known && home.Address != address {
		s.fault(s.Server.Pos, "the server of this job is the embedded one of line "+itoa(embedded.pos.Line)+" and listens on "+home.String(),
			"remove this server attribute: the site finds the embedded server by itself")
	}
}

// Ports is a range of ports, the same for TCP and UDP.
type Ports struct {
	First, Last uint16
	Pos         Pos
}

// ParsePorts parses a range: first and last port with a dash between.
func ParsePorts(s string) (p Ports, ok bool) {
	low, high, _ := strings.Cut(s, "-")
	first, bad := strconv.ParseUint(strings.TrimSpace(low), 10, 16)
	last, worse := strconv.ParseUint(strings.TrimSpace(high), 10, 16)
	return Ports{First: uint16(first), Last: uint16(last)}, bad == nil && worse == nil && 0 < first && first <= last
}

// IsZero reports whether there is no range.
func (p Ports) IsZero() bool { return p == Ports{} }

// String returns the range in the form of a job file.
func (p Ports) String() string { return fmt.Sprintf("%d-%d", p.First, p.Last) }

// Count returns the number of ports in the range.
func (p Ports) Count() int { return int(p.Last) - int(p.First) + 1 }

// Has reports whether port is one of the range.
func (p Ports) Has(port uint16) bool { return p.First <= port && port <= p.Last }

// ports hands out the first ones of each range: those that other machines have to know before
// anything listens, which are the server's, unless the launcher tells it to all sites, and the
// heads'. What is left is for what listens at the first free port.
func (b *builder) ports() {
	next := make(map[Pos]int) // by range: number of ports already assigned
	take := func(p Ports) uint16 {
		next[p.Pos]++
		return uint16(min(int(p.First)+next[p.Pos]-1, int(p.Last)))
	}
	for _, s := range b.ours() {
		for _, in := range []*block{b.root, s.block} {
			if p, ok := get[Ports](in, "ports"); ok {
				s.Ports, s.Ports.Pos = p, in.at("ports")
			}
		}
	}
	b.checkRanges()
	for _, s := range b.ours() {
		if at := s.Server.Address; s.Server.Embedded && !s.Ports.IsZero() && at.Port() == 0 && !at.Addr().IsLoopback() {
			port := take(s.Ports)
			for _, x := range b.ours() {
				if x.Server.Ours {
					x.Server.Address = netip.AddrPortFrom(x.Server.Address.Addr(), port)
				}
			}
		}
	}
	for _, s := range b.ours() {
		if named := s.Head.IsValid() || s.HeadName != ""; !s.Ports.IsZero() && !named && (len(s.Hosts) > 1 || s.Launch != nil) {
			s.headPort = take(s.Ports)
		}
	}
	small := make(map[Pos]bool)
	for _, s := range b.ours() {
		given := next[s.Ports.Pos]
		if s.Ports.IsZero() {
			continue
		}
		if n := s.Ports.Count(); n <= given && !small[s.Ports.Pos] {
			small[s.Ports.Pos] = true
			b.fault(s.Ports.Pos, fmt.Sprintf("ports %v has only %s, of which the server and the heads of sites take %d, and all hosts need some", s.Ports, plural(n, "port"), given),
				fmt.Sprintf("widen it, as to \"%d-%d\"", s.Ports.First, min(int(s.Ports.First)+99, 65535)))
		}
		s.Ports.First = uint16(min(int(s.Ports.First)+given, int(s.Ports.Last)))
	}
	checkTransportRanges(b)
}

// checkRanges reports ports that the file names although they are in a range, so that something
// else may have taken them by then, and ranges that have ports in common where sites share an
// address.
func (b *builder) checkRanges() {
	ours := b.ours()
	said := make(map[Pos]bool)
	for i, s := range ours {
		if s.Ports.IsZero() {
			continue
		}
		for _, n := range portsOfItsHosts(s) {
			if s.Ports.Has(n.port) && !said[n.pos] {
				said[n.pos] = true
				b.fault(n.pos, n.what+" has port "+itoa(int(n.port))+" of ports = "+quote(s.Ports.String())+", which something else may have taken by then",
					"write one outside of the range; "+n.other)
			}
		}
		for _, x := range ours[:i] {
			apart := x.Ports.Pos == s.Ports.Pos || x.Ports.Last < s.Ports.First || s.Ports.Last < x.Ports.First
			if !apart && slices.ContainsFunc(s.Hosts, x.hasHost) {
				b.fault(s.Ports.Pos, "site "+quote(x.Name)+" has some of these ports, too, in line "+itoa(x.Ports.Pos.Line)+", and a host with the same address",
					"write ports once, at the top of the file, or ranges that have no port in common")
			}
		}
	}
}

// checkTransportRanges reports ranges of transports with a port at which something else listens on
// the same host. Those of UDP are apart: nothing else listens by that.
func checkTransportRanges(b *builder) {
	said := make(map[Pos]bool)
	for _, s := range b.ours() {
		for _, t := range s.Transports {
			if !t.Builtin || t.Known.Machine || t.Known.Datagrams {
				continue
			}
			for _, x := range t.Settings {
				text, _ := x.Value.(string)
				in, ok := ParsePorts(text)
				if x.Name != "port_range" || !ok || said[x.Pos] {
					continue
				}
				for _, n := range portsOfItsHosts(s) {
					if in.Has(n.port) && !said[x.Pos] && !n.host {
						said[x.Pos] = true
						b.fault(x.Pos, "port_range = "+quote(text)+" has port "+itoa(int(n.port))+" of "+n.what+" (line "+itoa(n.pos.Line)+"), which a listener of "+t.Name+" may have taken by then",
							"write a range without "+itoa(int(n.port))+", or another port in line "+itoa(n.pos.Line))
					}
				}
			}
		}
	}
}

// listener is something that listens at a port which is known beforehand.
type listener struct {
	port  uint16
	pos   Pos // of the port, or of the range whose first ones are given to what others have to know
	what  string
	other string // what can be written instead of the port
	host  bool   // it is the port of a host block, which the transport of channels listens at itself
}

// portsOfItsHosts lists what listens at known ports of the hosts of a site: for this site, and for
// others that share a host with it.
func portsOfItsHosts(s *siteDraft) (list []listener) {
	add := func(port uint16, pos Pos, what string) {
		if port != 0 {
			list = append(list, listener{port: port, pos: pos, what: what, other: "0, or no port at all, takes one of the range"})
		}
	}
	for _, x := range s.ours() {
		first := len(x.Hosts) > 0 && s.hasHost(x.Hosts[0])
		if first && x.Server.Embedded {
			add(x.Server.Address.Port(), x.Server.Pos, embeddedServer)
		}
		if first {
			add(x.Head.Port(), x.block.at("head"), "the head")
			add(x.headPort, x.Ports.Pos, "the head of site "+quote(x.Name))
			if x.Ports.IsZero() && x.Launch == nil && !x.Head.IsValid() && x.HeadName == "" && len(x.Hosts) > 1 {
				add(HeadPort, x.Pos, "the head of site "+quote(x.Name))
			}
			add(x.UI.Listen.Port(), x.UI.Pos, "ui")
		}
		if slices.ContainsFunc(x.Hosts, s.hasHost) {
			add(x.Metrics.Listen.Port(), x.Metrics.Pos, "metrics")
		}
		for _, h := range x.Hosts {
			if s.hasHost(h) && h.Port != 0 {
				add(h.Port, h.portPos, "host "+h.String())
				list[len(list)-1].host = true
			}
		}
		list = append(list, serversOnItsHosts(s, x)...)
	}
	return list
}

// serversOnItsHosts lists the servers that site x uses and that are started by themselves, as far as
// they have the address of a host of s.
func serversOnItsHosts(s, x *siteDraft) (list []listener) {
	add := func(at netip.AddrPort, name string, pos Pos, what, flag string) {
		if at.Port() != 0 && s.hasHost(Host{Address: at.Addr(), Name: name}) {
			list = append(list, listener{port: at.Port(), pos: pos, what: what, other: "the server is started with " + flag + ", which says the same"})
		}
	}
	if !x.Server.Embedded && !x.Server.Ours {
		for _, at := range x.Server.All() {
			add(at.Address, at.Name, x.Server.Pos, "the job's server", "impi-server -port")
		}
	}
	add(x.Names.Server, x.Names.ServerName, x.Names.Pos, "the name server", "impi-server -names -port")
	return list
}

func (s *Site) hasHost(h Host) bool {
	return slices.ContainsFunc(s.Hosts, func(own Host) bool {
		return h.Address.IsValid() && own.Address == h.Address || h.Name != "" && own.Name == h.Name
	})
}
