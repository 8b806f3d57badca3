package node

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/node/procs"
	"github.com/openimpi/impi/internal/wireup"
)

// plannedPart is a part of a spawn and where it is to be started.
type plannedPart struct {
	spawnPart
	client wire.ClientRank // of the site's own job
	site   string
	own    bool
}

// plan decides where the commands of a spawn run. Ranks are in the order of commands,
// and those of a client are in a row: so neighbours at one host are a part each.
func (d *spawnService) plan(o *spawnedWorld, s *wireup.Spawn) (parts []*plannedPart, r *refusal) {
	for i := range s.Commands {
		c := spawnNumber{i, s.Commands[i]}
		at, problem := d.locate(c.Info["host"], o.by)
		if problem != "" {
			return nil, c.about(problem)
		}
		if k := len(parts) - 1; k >= 0 && parts[k].client == at.client && parts[k].Host == at.Host {
			parts[k].Commands = append(parts[k].Commands, c)
			continue
		}
		at.World, at.Commands = o.name, []spawnNumber{c}
		parts = append(parts, at)
	}
	if len(parts) > maxShares {
		return nil, refusing(-1, "the commands are in %d groups at one host each, at most %d are possible: bring those of one host together", len(parts), maxShares)
	}
	return parts, nil
}

// locate finds what the info key host names: a site of the job, a host of one by its
// address, or this machine. Without it procs are spawned where the spawner is.
func (d *spawnService) locate(host string, by *procs.Proc) (*plannedPart, string) {
	n := d.root
	own := &plannedPart{client: n.job.Self, site: n.opt.Site.Name, own: true}
	if name, err := os.Hostname(); host == "" || host == "localhost" || err == nil && host == name {
		own.Host = by.Address()
		return own, ""
	}
	for _, c := range n.job.Clients {
		if n.routes.SiteName(int(c.Rank)) == host {
			return d.at(c.Rank, ""), ""
		}
	}
	if a, err := netip.ParseAddr(host); err == nil {
		i := slices.IndexFunc(n.opt.Site.Hosts, func(h config.Host) bool { return h.Address == a })
		if i >= 0 {
			own.Host = a.String()
			return own, ""
		}
		for _, h := range n.job.Hosts {
			if h.Address.Addr() == a {
				return d.at(h.Client, a.String()), ""
			}
		}
	}
	return nil, fmt.Sprintf("there is no site or host %q in the job, which has %s", host, strings.Join(d.everywhere(), ", "))
}

// at is a place of the site of a client.
func (d *spawnService) at(client wire.ClientRank, host string) *plannedPart {
	p := &plannedPart{client: client, site: d.root.routes.SiteName(int(client)), own: client == d.root.job.Self}
	if p.Host = host; p.own && host == "" {
		p.Host = d.root.opt.Site.Hosts[0].Address.String()
	}
	return p
}

// everywhere lists the sites of the job, or the address of those that the site's file
// does not have.
func (d *spawnService) everywhere() (list []string) {
	n := d.root
	for _, c := range n.job.Clients {
		name := n.routes.SiteName(int(c.Rank))
		if name == "" {
			name = n.job.Hosts[c.FirstHost].Address.Addr().String()
		}
		list = append(list, name)
	}
	return list
}
