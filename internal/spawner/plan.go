package spawner

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/spawn"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/internal/hostlist"
	"github.com/openimpi/impi/internal/procs"
)

// maxNames is how many hosts the info key host of a command may list.
const maxNames = 4096

const lookUpLimit = 5 * time.Second

func (d *Spawner) hosts() []config.Host {
	if d.Hosts != nil {
		return d.Hosts
	}
	return d.Routes.Site.Hosts
}

func (d *Spawner) plan(ctx context.Context, world string, by *procs.Proc, commands []spawn.Command) ([]*spawn.PlacedPart, *spawn.Refusal) {
	j := d.job(by)
	for i := range commands {
		c := &commands[i]
		names, problem := namesOf(c.Info)
		if problem != "" {
			return nil, c.Refuse(problem)
		}
		if names == nil {
			continue
		}
		for _, name := range names {
			lookUp(ctx, net.DefaultResolver, j, name)
		}
		c.Info["host"] = strings.Join(names, ",")
	}
	return j.Plan(world, commands)
}

// namesOf returns what the info key host lists, or the key hosts, which other MPIs have for it.
func namesOf(info map[string]string) (names []string, problem string) {
	list := cmp.Or(info["host"], info["hosts"])
	if list == "" {
		return nil, ""
	}
	names, err := hostlist.Expand(list, maxNames)
	if err != nil {
		return nil, fmt.Sprintf("its host %q is no list of hosts: %v", list, err)
	}
	return names, ""
}

// resolver gives the addresses of host names. A net.Resolver is one.
type resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// lookUp resolves a name that no host of the job has, and adds it to the names of the hosts that
// have one of its addresses.
func lookUp(ctx context.Context, from resolver, j *spawn.Job, name string) {
	if _, err := netip.ParseAddr(name); err == nil || name == "localhost" || slices.Contains(j.Names, name) {
		return
	}
	sites := slices.Concat(j.Sites, j.Spares)
	for _, s := range sites {
		if s.Name == name || slices.ContainsFunc(s.Hosts, func(h spawn.Host) bool { return slices.Contains(h.Names, name) }) {
			return
		}
	}
	ctx, cancel := context.WithTimeout(ctx, lookUpLimit)
	defer cancel()
	found, _ := from.LookupNetIP(ctx, "ip", name) // after an error no host gets the name
	for _, s := range sites {
		for i := range s.Hosts {
			if slices.ContainsFunc(found, func(a netip.Addr) bool { return slices.Contains(s.Hosts[i].Addresses, a.Unmap()) }) {
				s.Hosts[i].Names = append(s.Hosts[i].Names, name)
			}
		}
	}
}

func (d *Spawner) job(by *procs.Proc) *spawn.Job {
	world := d.Routes.World
	j := &spawn.Job{Self: world.Self, SpawnerHost: d.hostOfProc(by), Spread: d.Hosts != nil}
	if name, err := os.Hostname(); err == nil {
		j.Names = []string{name}
	}
	for i := range world.Clients {
		j.Sites = append(j.Sites, d.place(&world.Clients[i]))
	}
	if d.SpareSites != nil {
		for _, x := range d.SpareSites.List() {
			site := spawn.Site{Name: x.Name}
			for _, h := range x.Hosts { // lookUp adds names
				site.Hosts = append(site.Hosts, spawn.Host{Addresses: h.Addresses, Names: slices.Clone(h.Names)})
			}
			j.Spares = append(j.Spares, site)
		}
	}
	return j
}

// hostOfProc is the host of the site that a proc runs on. The proc may be one of a spawned world.
func (d *Spawner) hostOfProc(p *procs.Proc) int {
	if d.Hosts != nil {
		return d.Self
	}
	return max(0, slices.IndexFunc(d.Routes.Site.Hosts, func(h config.Host) bool { return h.Address.String() == p.Address() }))
}

// place describes a site of the job as a place for spawned procs.
func (d *Spawner) place(c *startup.ClientInfo) spawn.Site {
	world := d.Routes.World
	s := spawn.Site{Name: d.Routes.SiteName(int(c.Rank))}
	file := d.hosts()
	if c.Rank != world.Self {
		x, _ := d.Routes.Job.Site(s.Name)
		file = x.Hosts
	}
	for i := range c.NHosts {
		h := spawn.Host{Addresses: []netip.Addr{world.Hosts[int(c.FirstHost)+i].Address.Addr()}}
		if len(file) == c.NHosts && file[i].Address.IsValid() { // the network setting may have chosen another
			h.Addresses = append(h.Addresses, file[i].Address)
		}
		if len(file) == c.NHosts && file[i].Name != "" {
			h.Names = append(h.Names, file[i].Name)
		}
		s.Hosts = append(s.Hosts, h)
	}
	return s
}
