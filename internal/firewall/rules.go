// Package firewall is the command impi-node ports: which ports a job's sites must open to each
// other.
package firewall

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/membership"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

// Rule describes connections to a host of a site that a firewall must admit.
type Rule struct {
	Site   string   `json:"site,omitempty"` // the host's site; empty: none
	Host   string   `json:"host"`           // its address or name
	Proto  string   `json:"protocol"`       // tcp, udp or unknown
	Ports  string   `json:"ports"`          // "7800", "7900-7999", or "any"
	From   []string `json:"from"`           // addresses and names, or "hosts of SITE" where the file does not have them
	For    string   `json:"for"`
	Remedy string   `json:"remedy,omitempty"` // how to get by with fewer ports
}

const anyPort = "any"

// useRange is what to do about ports that the system would choose.
const useRange = `write ports = "7800-7899" at the top of the file, for all that listens`

// Rules returns the rules that the sites of a job need, ordered by host. Connections within a host
// need none.
func Rules(job *config.Job) (list []Rule) {
	for _, s := range job.All() {
		if s.Foreign {
			continue
		}
		for _, at := range s.Server.All() {
			list = append(list, serverRules(job, s, at)...)
		}
		for i, h := range s.Hosts {
			if i == 0 {
				list = append(list, headRule(s)...)
			}
			list = append(list, channelRule(job, s, h)...)
			for _, t := range s.Transports {
				list = append(list, directRule(job, s, h, t)...)
			}
			list = append(list, treeRule(s, i)...)
			list = append(list, spawnedRules(job, s, h)...)
			list = append(list, nativeRule(s, h)...)
			list = append(list, sshRule(s, i)...)
			list = append(list, metricsRule(s, h)...)
		}
	}
	list = append(list, namesRules(job)...)
	return slices.CompactFunc(list, func(a, b Rule) bool { return a.String() == b.String() && a.Host == b.Host })
}

// serverRules returns the rules for the job's server, if a site of the file runs it, or for the
// first site that dials it. at is one of its addresses, if there are several.
func serverRules(job *config.Job, s config.Site, at config.ServerAddress) []Rule {
	r := Rule{Host: cmp.Or(at.Name, at.Address.Addr().String()), Proto: "tcp", Ports: port(at.Address.Port(), s), For: "the job's server"}
	switch {
	case s.Server.Embedded:
		r.Site = s.Name
		if s.Server.Address.Port() == 0 || s.Server.Address.Addr().IsLoopback() {
			r.Remedy = `write listen = "ADDRESS:7800" in embedded_server, with an address that the others reach`
		}
	case s.Server.Ours || !s.Server.Address.IsValid() && s.Server.Name == "":
		return nil // the site that embeds it has the rule
	case slices.IndexFunc(job.All(), func(x config.Site) bool { return !x.Foreign }) != slices.IndexFunc(job.All(), func(x config.Site) bool { return x.Name == s.Name }):
		return nil // the first site has the rule
	}
	for _, x := range job.All() { // each host dials it, those behind the heads when procs publish names
		if x.Name != s.Name || !s.Server.Embedded {
			r.From = append(r.From, hosts(x)...)
		} else if len(x.Hosts) > 1 {
			r.From = append(r.From, others(x, x.Hosts[0])...)
		}
	}
	return some(r)
}

// headRule admits the other hosts of a site, which dial the head.
func headRule(s config.Site) []Rule {
	at := s.HeadAddress()
	host := s.Hosts[0].String()
	if s.Head.IsValid() {
		host = at.Addr().String()
	}
	r := Rule{Site: s.Name, Host: cmp.Or(s.HeadName, host), Proto: "tcp", Ports: port(at.Port(), s), From: others(s, s.Hosts[0]), For: "the head of the site"}
	if s.Launch != nil && !s.Head.IsValid() && s.HeadName == "" { // the head reports its address to the other hosts
		if r.Ports = port(0, s); r.Ports == anyPort {
			r.Remedy = useRange
		}
	}
	return some(r)
}

// treeRule admits the hosts that a host connects with the head, in a site of very many hosts.
func treeRule(s config.Site, i int) []Rule {
	first, end := membership.Tree{Hosts: len(s.Hosts), Fan: membership.DefaultFan}.Children(i)
	if i == 0 || first == end {
		return nil
	}
	r := Rule{Site: s.Name, Host: s.Hosts[i].String(), Proto: "tcp", Ports: port(0, s), For: "hosts that it connects with the head"}
	if r.Ports == anyPort {
		r.Remedy = useRange
	}
	for _, h := range s.Hosts[first:end] {
		r.From = append(r.From, h.String())
	}
	return some(r)
}

// spawnedRules admit all hosts to what a node opens for the worlds that its procs spawn: their
// server, the head of their procs at this site, and their channels, which have ports of their own.
func spawnedRules(job *config.Job, s config.Site, h config.Host) (list []Rule) {
	if !spawns(job) {
		return nil
	}
	r := Rule{Site: s.Name, Host: h.String(), Proto: "tcp", Ports: port(0, s), For: "spawned worlds"}
	if r.Ports == anyPort {
		r.Remedy = useRange + "; or forbid them at all sites: spawn { slots = 0 }"
	}
	for _, x := range job.All() {
		if x.Name == s.Name {
			r.From = append(r.From, others(s, h)...)
		} else if !x.Foreign {
			r.From = append(r.From, hosts(x)...)
		}
	}
	list = some(r)
	if in, ok := channelRange(s); ok && h.Port != 0 { // without a port of its own the host has a rule for the range
		r.Ports, r.Remedy, r.For = in, "", "channels of spawned worlds"
		list = append(list, some(r)...)
	}
	return list
}

// spawns reports whether procs may be spawned at any site of the job.
func spawns(job *config.Job) bool {
	return !job.Complete || slices.ContainsFunc(job.All(), func(x config.Site) bool { return x.Spawn.Slots > 0 })
}

func others(s config.Site, but config.Host) (list []string) {
	for _, h := range s.Hosts {
		if h.String() != but.String() {
			list = append(list, h.String())
		}
	}
	return list
}

func hosts(s config.Site) (list []string) {
	if s.Foreign || len(s.Hosts) == 0 || s.Network != (config.Network{}) {
		return []string{"hosts of " + s.Name}
	}
	return others(s, config.Host{})
}

// channelRule admits the channels between hosts that IMPI defines.
func channelRule(job *config.Job, s config.Site, h config.Host) []Rule {
	r := Rule{Site: s.Name, Host: h.String(), Proto: "tcp", Ports: port(h.Port, s), For: "channels"}
	if h.Port == 0 {
		if r.Ports == anyPort {
			r.Remedy = useRange
		}
		if in, ok := channelRange(s); ok {
			r.Ports, r.Remedy = in, ""
		}
	}
	for _, x := range job.All() {
		if x.Name == s.Name {
			r.From = append(r.From, others(s, h)...)
		} else {
			r.From = append(r.From, hosts(x)...)
		}
	}
	return some(r)
}

// channelRange returns the ports to which the transport that makes channels is bound by settings of
// its own.
func channelRange(s config.Site) (in string, ok bool) {
	for _, t := range s.Transports {
		if first, last, bound := portRange(t); bound && t.Known.Channels {
			in, ok = ports(first, last), true
		}
	}
	return in, ok
}

// directRule admits direct links by a transport, from all sites whose routes allow them, to procs of
// the job or to those that its procs spawn.
func directRule(job *config.Job, s config.Site, h config.Host, t config.Transport) []Rule {
	if t.Known.Machine {
		return nil
	}
	r := Rule{Site: s.Name, Host: h.String(), Proto: "tcp", Ports: port(0, s), For: "direct links by " + t.Name}
	if t.Known.Datagrams {
		r.Proto = "udp"
	}
	first, last, ok := portRange(t)
	switch {
	case ok:
		r.Ports = ports(first, last)
	case !t.Builtin:
		r.Proto, r.Remedy = "unknown", "see the documentation of "+cmp.Or(t.Plugin, t.Name)
	case r.Ports == anyPort:
		r.Remedy = useRange
	}
	direct := false
	for _, x := range job.All() {
		links := !x.Foreign && (linksDirectly(s, x, t.Name) || spawns(job) && linksWorlds(s, x, t.Name))
		if !links && (x.Foreign || !offers(s, t.Name) || !makesChannels(x, s, t.Name)) {
			continue
		}
		direct = direct || links && (x.Name != s.Name || len(s.Hosts) > 1)
		if x.Name == s.Name {
			r.From = append(r.From, others(s, h)...)
		} else {
			r.From = append(r.From, hosts(x)...)
		}
	}
	if !direct {
		r.For = "channels by " + t.Name
	}
	return some(r)
}

func linksDirectly(s, x config.Site, transport string) bool {
	return allows(s.RouteTo(x.Name), transport) && allows(x.RouteTo(s.Name), transport)
}

// linksWorlds reports whether procs of two sites have direct links by a transport if they are of two
// worlds, as parents and those they spawn are.
func linksWorlds(s, x config.Site, transport string) bool {
	return allows(s.RouteTo("*"), transport) && allows(x.RouteTo("*"), transport)
}

func allows(r config.Route, transport string) bool {
	return r.Direct && slices.Contains(r.Prefer, transport)
}

// offers reports whether the nodes of a site listen for links by a transport: for all that any of
// its routes prefers.
func offers(s config.Site, transport string) bool {
	return slices.ContainsFunc(append(slices.Clone(s.Routes), s.RouteTo("*")), func(r config.Route) bool {
		return slices.Contains(r.Prefer, transport)
	})
}

// makesChannels reports whether nodes of a site may make channels to another site through
// transport, in addition to IMPI's port. It decides as nodes do: a transport that meets the routes'
// demands replaces plain TCP where they forbid that, and with direct = false a transport that the
// route prefers to it.
func makesChannels(from, to config.Site, transport string) bool {
	r, back := from.RouteTo(to.Name), to.RouteTo(from.Name)
	encrypts := r.RequireTLS || r.Closed || back.RequireTLS || back.Closed
	must := encrypts || pins(r) || pins(back)
	if r.Direct && !must {
		return false
	}
	for _, name := range r.Prefer {
		t, known := from.Transport(name)
		switch {
		case !known || encrypts && t.Builtin && !t.Encrypted():
		case t.Known.Channels && !must:
			return false
		case name == transport:
			return true
		}
	}
	return false
}

// pins reports whether a route has all packets go by channels that must not be kernel sockets.
func pins(r config.Route) bool {
	return !r.Direct && len(r.DataPlane) > 0 && !slices.Contains(r.DataPlane, string(transports.PlaneFD))
}

func metricsRule(s config.Site, h config.Host) []Rule {
	at := s.Metrics.Listen
	if !at.IsValid() || at.Addr().IsLoopback() || !at.Addr().IsUnspecified() && at.Addr() != h.Address {
		return nil
	}
	r := Rule{Site: s.Name, Host: h.String(), Proto: "tcp", Ports: port(at.Port(), s), From: []string{"Prometheus"}, For: "metrics"}
	if r.Ports == anyPort {
		r.Remedy = useRange
	}
	return []Rule{r}
}

// some returns the rule without the sources that are the host itself, and nothing if no others are
// left.
func some(r Rule) []Rule {
	ip, err := netip.ParseAddr(r.Host)
	r.From = slices.DeleteFunc(r.From, func(from string) bool {
		return from == r.Host || err == nil && ip.IsLoopback() && isLoopback(from)
	})
	if len(r.From) == 0 {
		return nil
	}
	return []Rule{r}
}

func isLoopback(s string) bool {
	ip, err := netip.ParseAddr(s)
	return err == nil && ip.IsLoopback()
}

// port is the text for a port of the file, or for what a site has instead.
func port(n uint16, s config.Site) string {
	switch {
	case n != 0:
		return fmt.Sprint(n)
	case s.Ports.IsZero():
		return anyPort
	}
	return s.Ports.String()
}

func ports(first, last uint16) string { return fmt.Sprintf("%d-%d", first, last) }

// portRange returns the ports of a built-in transport that the file bounds.
func portRange(t config.Transport) (first, last uint16, ok bool) {
	if !t.Builtin {
		return 0, 0, false
	}
	first, last, err := socket.PortRange(t.SettingMap(), transports.Setting{Name: "port_range"})
	return first, last, err == nil && last != 0
}

// String returns the rule in one line, without its host.
func (r *Rule) String() string {
	s := fmt.Sprintf("%s %s from %s: %s", r.Proto, r.Ports, strings.Join(r.From, ", "), r.For)
	if r.Remedy != "" {
		s += " (" + r.Remedy + ")"
	}
	return s
}
