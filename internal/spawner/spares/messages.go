package spares

import (
	"net/netip"

	"github.com/openimpi/impi/core/spawn"
	"github.com/openimpi/impi/core/wire"
)

// MaxOrder is the maximum size in bytes of a message that asks for procs, as between two sites.
const MaxOrder = 1 << 17

// maxOffer is the most bytes of an offer: each host takes less than 300.
const maxOffer = 1 << 20

const maxName = 255

const maxFailure = 4096

// maxHosts is how many hosts of an offer are used; further ones are ignored.
const maxHosts = 2048

type offer struct {
	Site     string        `json:"site"`
	Instance uint64        `json:"instance"`
	To       wire.HostRank `json:"to"`
	Hosts    []offeredHost `json:"hosts,omitempty"`
	Procs    int           `json:"procs,omitempty"`
}

type offeredHost struct {
	Address netip.Addr `json:"address"`
	Name    string     `json:"name,omitempty"`
}

func (o *offer) spawn() spawn.SpareOffer {
	x := spawn.SpareOffer{Site: o.Site, Instance: o.Instance, To: o.To, Procs: o.Procs}
	for _, h := range o.Hosts[:min(len(o.Hosts), maxHosts)] {
		if !h.Address.IsValid() {
			continue
		}
		host := spawn.Host{Addresses: []netip.Addr{h.Address}}
		if h.Name != "" && len(h.Name) <= maxName {
			host.Names = []string{h.Name}
		}
		x.Hosts = append(x.Hosts, host)
	}
	return x
}

type taken struct {
	Refused string `json:"refused,omitempty"` // empty: it is accepted
}

// Order is the message that a node of the job sends on an idle link, once.
type Order struct {
	Part    *spawn.Part `json:"part,omitempty"` // the part that is to be started
	Over    bool        `json:"over,omitempty"` // the job is over
	Failure string      `json:"failure,omitempty"`
}
