package spawn

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/openimpi/impi/core/wire"
)

// Job describes, for a plan, the job whose proc spawns.
type Job struct {
	Self        wire.ClientRank // site of the spawning proc
	SpawnerHost int             // host of the spawning proc, as index among those of its site
	Sites       []Site          // by client rank
	Names       []string        // names of this machine that the info key host may contain

	Spares []Site // spare sites that are declared or have come: see Spares

	// Spread is true if the hosts of the proc's site are machines: procs are spread over them
	// unless the info key host names hosts.
	Spread bool
}

// Site is a site of the job, or a spare one, as a place for spawned procs.
type Site struct {
	Name  string // empty: not in the file of the proc's site
	Hosts []Host
}

// Host is a host of a site, with what the info key host may call it (MPI-4.1, 11.8.4).
type Host struct {
	Addresses []netip.Addr // at least one; other procs get the first one
	Names     []string     // names that the info key host may contain instead
}

func (h *Host) is(name string, addr netip.Addr) bool {
	return addr.IsValid() && slices.Contains(h.Addresses, addr) || slices.Contains(h.Names, name)
}

// PlacedPart is a part and the site that should start it.
type PlacedPart struct {
	Part
	Client wire.ClientRank // rank of the site in the parents' job; NoClient: a spare site
	Spare  string          // name of the spare site; empty: a site of the job
	Hosts  []int           // hosts of the proc's own site for the part, in the order of new ranks; nil: another site

	NewClient wire.ClientRank // client of the new world that the part belongs to; set by [Transaction.Answered]
}

// NoClient is the Client of a PlacedPart at a spare site.
const NoClient wire.ClientRank = -1

// shares reports whether a part is of the same client of the new world as the one before it: the
// hosts of the proc's own site are one client, of which the node that spawns makes the list.
// Another site is asked for each part by itself, and knows of no other.
func (p *PlacedPart) shares(before *PlacedPart) bool {
	return p.Hosts != nil && before.Hosts != nil
}

// Plan decides where the commands of a spawn may run. Ranks are in the order of the commands
// (MPI-4.1, 11.8.3), and those of one host of the new world are consecutive: commands that follow
// each other at the same hosts are therefore one part.
func (j *Job) Plan(world string, commands []Command) (parts []*PlacedPart, r *Refusal) {
	for _, c := range commands {
		p, problem := j.locate(c.Info["host"])
		if problem != "" {
			return nil, c.Refuse(problem)
		}
		if k := len(parts) - 1; k >= 0 && parts[k].Client == p.Client && parts[k].Spare == p.Spare && parts[k].Host == p.Host && slices.Equal(parts[k].Hosts, p.Hosts) {
			parts[k].Commands = append(parts[k].Commands, c)
			continue
		}
		p.World, p.Commands = world, []Command{c}
		parts = append(parts, &p)
	}
	clients := 0
	for i, p := range parts {
		if i == 0 || !p.shares(parts[i-1]) {
			clients++
		}
	}
	if clients > MaxClients {
		return nil, Refuse(-1, "the commands are in %d groups at one site each, at most %d are possible: bring those of one site together", clients, MaxClients)
	}
	return parts, nil
}

// locate finds what the info key host names: a site of the job, hosts of a site by their names
// or addresses, or this machine. Without the key, procs are spawned where the spawner is or,
// if the site has several machines, on all of them. If another site is named and no host of
// it, any of its hosts may be taken.
func (j *Job) locate(list string) (p PlacedPart, problem string) {
	if list == "" {
		p = PlacedPart{Client: j.Self, Hosts: []int{j.SpawnerHost}}
		for i := 1; j.Spread && i < len(j.Sites[j.Self].Hosts); i++ {
			p.Hosts = append(p.Hosts, (j.SpawnerHost+i)%len(j.Sites[j.Self].Hosts))
		}
		return p, ""
	}
	for i, name := range strings.Split(list, ",") {
		q, ok := j.named(strings.TrimSpace(name))
		switch {
		case !ok:
			return p, fmt.Sprintf("there is no site or host %q in the job, which has %s", name, j.everywhere())
		case i == 0:
			p = q
		case p.Client != q.Client, p.Spare != q.Spare:
			return p, fmt.Sprintf("its hosts %q are of several sites: spawn a command at each", list)
		case p.Client != j.Self && p.Host != q.Host:
			return p, fmt.Sprintf("its hosts %q are several of another site: spawn a command at each", list)
		}
		for _, h := range q.Hosts {
			if !slices.Contains(p.Hosts, h) {
				p.Hosts = append(p.Hosts, h)
			}
		}
	}
	return p, ""
}

// named finds what one name in the info key host means.
func (j *Job) named(name string) (p PlacedPart, ok bool) {
	if name == "localhost" || slices.Contains(j.Names, name) {
		return PlacedPart{Client: j.Self, Hosts: []int{j.SpawnerHost}}, true
	}
	for i, s := range j.Sites {
		if s.Name != name || name == "" {
			continue
		}
		p.Client = wire.ClientRank(i)
		for k := range s.Hosts {
			if p.Client == j.Self && (j.Spread || k == 0) {
				p.Hosts = append(p.Hosts, k)
			}
		}
		return p, true
	}
	addr, _ := netip.ParseAddr(name)
	own := func(h Host) bool { return h.is(name, addr) }
	if h := j.Sites[j.Self].Hosts; slices.ContainsFunc(h, own) {
		p.Client = j.Self
		for k := range h {
			if own(h[k]) { // several, if one machine has several hosts
				p.Hosts = append(p.Hosts, k)
			}
		}
		return p, true
	}
	for i, s := range j.Sites {
		if k := slices.IndexFunc(s.Hosts, own); k >= 0 {
			p.Client, p.Host = wire.ClientRank(i), s.Hosts[k].Addresses[0].String()
			return p, true
		}
	}
	for _, s := range j.Spares {
		p = PlacedPart{Client: NoClient, Spare: s.Name}
		if s.Name == name {
			return p, true
		}
		if k := slices.IndexFunc(s.Hosts, own); k >= 0 {
			p.Host = s.Hosts[k].Addresses[0].String()
			return p, true
		}
	}
	return PlacedPart{}, false
}

// everywhere lists the names of the job's sites, for an error. A site that the file of the
// proc's site does not name is listed by its first address.
func (j *Job) everywhere() string {
	var list []string
	for _, s := range j.Sites {
		if s.Name == "" && len(s.Hosts) > 0 {
			s.Name = s.Hosts[0].Addresses[0].String()
		}
		list = append(list, s.Name)
	}
	for _, s := range j.Spares {
		list = append(list, s.Name+" (spare)")
	}
	return strings.Join(list, ", ")
}
