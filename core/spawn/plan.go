package spawn

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/openimpi/impi/core/wire"
)

// Job is what a plan needs to know of the job whose proc spawns.
type Job struct {
	Self  wire.ClientRank // the site of the proc
	Sites []Site          // by client rank
	Names []string        // of this machine, which the info key host may give
}

// Site is a site of the job.
type Site struct {
	Name  string // empty: the file of the proc's site does not have it
	Hosts []netip.Addr
}

// Placed is a part and the site that is to start it.
type Placed struct {
	Part
	Client wire.ClientRank // of the job of the parents
}

// Plan decides where the commands of a spawn run; by is the host of the proc that spawns. Ranks are
// in the order of commands, and those of a client of the new world are in a row: so neighbours at
// one host are a part each.
func (j *Job) Plan(world string, by string, commands []Command) (parts []*Placed, r *Refusal) {
	for _, c := range commands {
		client, host, problem := j.locate(c.Info["host"], by)
		if problem != "" {
			return nil, c.Refuse(problem)
		}
		if k := len(parts) - 1; k >= 0 && parts[k].Client == client && parts[k].Host == host {
			parts[k].Commands = append(parts[k].Commands, c)
			continue
		}
		parts = append(parts, &Placed{Part{World: world, Host: host, Commands: []Command{c}}, client})
	}
	if len(parts) > MaxParts {
		return nil, Refuse(-1, "the commands are in %d groups at one host each, at most %d are possible: bring those of one host together", len(parts), MaxParts)
	}
	return parts, nil
}

// locate finds what the info key host names: a site of the job, a host of one by its address, or
// this machine. Without it procs are spawned where the spawner is. Of another site any host will do
// (empty) if only the site is named.
func (j *Job) locate(name string, by string) (client wire.ClientRank, host, problem string) {
	if name == "" || name == "localhost" || slices.Contains(j.Names, name) {
		return j.Self, by, ""
	}
	for i, s := range j.Sites {
		switch client = wire.ClientRank(i); {
		case s.Name != name:
		case client == j.Self:
			return client, s.Hosts[0].String(), ""
		default:
			return client, "", ""
		}
	}
	if a, err := netip.ParseAddr(name); err == nil {
		if slices.Contains(j.Sites[j.Self].Hosts, a) {
			return j.Self, a.String(), ""
		}
		for i, s := range j.Sites {
			if slices.Contains(s.Hosts, a) {
				return wire.ClientRank(i), a.String(), ""
			}
		}
	}
	return 0, "", fmt.Sprintf("there is no site or host %q in the job, which has %s", name, j.everywhere())
}

// everywhere lists the sites of the job, or the address of those that the site's file does not have.
func (j *Job) everywhere() string {
	var list []string
	for _, s := range j.Sites {
		if s.Name == "" && len(s.Hosts) > 0 {
			s.Name = s.Hosts[0].String()
		}
		list = append(list, s.Name)
	}
	return strings.Join(list, ", ")
}
