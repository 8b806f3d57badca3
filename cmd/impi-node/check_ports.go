package main

import (
	"fmt"
	"slices"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/membership"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

// ports counts the ports that the node of a site opens in the port_range of a built-in
// transport.
func (c *checker) ports(s config.Site, t config.Transport) {
	if !wanted(s, t.Name) {
		return
	}
	first, last, err := socket.PortRange(t.SettingMap(), transports.Setting{Name: "port_range"})
	if err != nil || last == 0 {
		return // no port_range, or Configure reports the error
	}
	direct := len(routes.ListenerPlanes(s, t.Name, c.links[offered{s.Name, t.Name}].DataPlanes))
	needs := make(map[string]int) // number of ports, by address
	for _, h := range s.Hosts {
		at := h.Address.String()
		if !h.Address.IsValid() {
			at = h.Name
		}
		if bind, _ := t.SettingMap()["bind"].(string); bind != "" {
			at = bind
		}
		needs[at] += direct
		if h.Port == 0 && t.Known.Channels && !takesPlugins(s) {
			needs[at]++ // for the agents' channels
		}
		if has := int(last) - int(first) + 1; needs[at] > has {
			c.found = append(c.found, c.job.TransportFault(t, "port_range",
				fmt.Sprintf("a node opens %d ports at one address: one for channels, and for each host one for every list of data planes that routes pin; the range has only %d", needs[at], has),
				fmt.Sprintf("widen it, as to \"%d-%d\"", first, min(int(first)+9, 65535))))
			return
		}
	}
}

func takesPlugins(s config.Site) bool {
	return slices.ContainsFunc(s.Transports, func(t config.Transport) bool { return !t.Builtin && wanted(s, t.Name) })
}

// sharedPorts counts, at each address, what takes one of the ports in the attribute ports.
func (c *checker) sharedPorts() {
	type place struct {
		at    config.Pos
		proto string
		host  string
	}
	needs := make(map[place]int)
	said := make(map[config.Pos]bool)
	for _, s := range c.job.All() {
		if s.Ports.IsZero() {
			continue
		}
		add := func(n int, proto, host string) {
			at := place{s.Ports.Pos, proto, host}
			if needs[at] += n; needs[at] > s.Ports.Count() && !said[s.Ports.Pos] {
				said[s.Ports.Pos] = true
				c.fault(s.Ports.Pos, fmt.Sprintf("at %s at least %d %s ports are needed besides those of the server and of heads, and the range leaves %v", host, needs[at], proto, s.Ports),
					fmt.Sprintf("widen it, as to \"%d-%d\"; what is spawned needs some, too", s.Ports.First, min(int(s.Ports.First)+99, 65535)))
			}
		}
		for i, h := range s.Hosts {
			c.hostPorts(s, i, func(n int, proto string) { add(n, proto, h.String()) })
		}
		if at := s.Server.Address; s.Server.Embedded && at.IsValid() && at.Port() == 0 {
			add(1, "TCP", at.Addr().String())
		}
		if at := s.UI.Listen; at.IsValid() && at.Port() == 0 {
			add(1, "TCP", at.Addr().String())
		}
	}
}

func (c *checker) hostPorts(s config.Site, i int, add func(n int, proto string)) {
	h := s.Hosts[i]
	first, end := membership.Tree{Hosts: len(s.Hosts), Fan: membership.DefaultFan}.Children(i)
	if first < end && (i > 0 || s.Launch != nil && !s.Head.IsValid() && s.HeadName == "") {
		add(1, "TCP")
	}
	if at := s.Metrics.Listen; at.IsValid() && at.Port() == 0 && slices.IndexFunc(s.Hosts, func(x config.Host) bool { return x.String() == h.String() }) == i {
		add(1, "TCP") // a machine may run several hosts in one node
	}
	bounded := false
	for _, t := range s.Transports {
		links := c.links[offered{s.Name, t.Name}]
		bounded = bounded || t.Known.Channels && t.HasRange()
		if !wanted(s, t.Name) || t.HasRange() || t.Known.Machine || links.Reach == transports.ReachMachine {
			continue
		}
		proto := "TCP"
		if t.Known.Datagrams {
			proto = "UDP"
		}
		add(len(routes.ListenerPlanes(s, t.Name, links.DataPlanes)), proto)
	}
	if h.Port == 0 && !bounded {
		add(1, "TCP")
	}
}
