package main

import (
	"fmt"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/node/routes"
	"github.com/openimpi/impi/transports"
	"github.com/openimpi/impi/transports/socket"
)

// ports counts the ports that the node of a site opens in the port_range of a built-in
// transport.
func (c *checker) ports(s config.Site, t config.Transport) {
	if !wanted(s, t.Name) {
		return
	}
	first, last, err := socket.PortRange(t.SettingMap(), transports.Setting{Name: "port_range"})
	if err != nil || last == 0 {
		return // there is no port_range, or Configure reports what is wrong
	}
	direct := len(routes.ListenerPlanes(s, t.Name, c.links[offered{s.Name, t.Name}].DataPlanes))
	needs := make(map[string]int) // by address
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

// takesPlugins reports whether the site starts a plugin that channels may use.
func takesPlugins(s config.Site) bool {
	for _, t := range s.Transports {
		if !t.Builtin && wanted(s, t.Name) {
			return true
		}
	}
	return false
}
