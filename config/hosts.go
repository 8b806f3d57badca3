package config

import (
	"net/netip"
	"slices"

	"github.com/openimpi/impi/internal/hostlist"
)

// sharedHosts reports hosts at the top of a file with several sites: only a file with one site
// may have them there.
func (b *builder) sharedHosts() {
	if len(b.ours()) < 2 {
		return
	}
	for _, name := range []string{"hosts", "procs"} {
		if b.root.has(name) {
			b.fault(b.root.at(name), name+" could belong to any of the file's sites", "move it into a site block")
		}
	}
	for _, h := range b.root.all("host") {
		b.fault(h.pos, "this host could belong to any of the file's sites", "move it into a site block")
	}
}

// hostLayers returns the blocks that may name the hosts of s, the one with priority first: its own,
// and in a file with one site the file's.
func (s *siteDraft) hostLayers() []*block {
	if len(s.ours()) == 1 {
		return []*block{s.block, s.root}
	}
	return []*block{s.block}
}

// hosts takes s's hosts: those of the attribute hosts, and then its host blocks.
func (s *siteDraft) hosts() {
	layers := s.hostLayers()
	listPos, listed := s.listedHosts(layers)
	list := len(s.Hosts)
	var blocks []*block
	for _, in := range layers {
		blocks = append(blocks, in.all("host")...)
	}
	for _, h := range blocks {
		host := Host{Procs: 1, Pos: h.pos, portPos: h.at("port")}
		fill(&host, h)
		host.Auto = host.Procs == 0
		host.Name = nameIn("address", h)
		same := func(x Host) bool {
			return x.Address == host.Address && x.Address.IsValid() || x.Name == host.Name && x.Name != ""
		}
		if slices.ContainsFunc(s.Hosts[:list], same) { // it is not clear whether one host is meant or two
			s.fault(h.at("address"), "hosts in line "+itoa(listPos.Line)+" has "+host.String()+", too",
				"take it out of hosts: the block says more of it")
		}
		s.Hosts = append(s.Hosts, host)
	}
	if !listed && len(blocks) == 0 && s.Launch.knowsHosts() {
		if s.opt.Allocation != nil {
			for _, h := range s.opt.Allocation(s.Name, *s.Launch) {
				s.Hosts = append(s.Hosts, Host{Name: h.Name, Address: h.Address, Procs: h.Procs, Pos: s.Launch.Pos, portPos: s.Launch.Pos})
			}
		}
		return
	}
	if !listed && len(blocks) == 0 && len(s.root.all("host")) == 0 {
		s.fault(s.Pos, "site "+quote(s.Name)+" has no host", `add host { address = "127.0.0.1"  procs = 2 }`)
	}
}

// listedHosts takes the attributes hosts and procs. listed reports whether there is a list, even
// a bad one.
func (s *siteDraft) listedHosts(layers []*block) (pos Pos, listed bool) {
	for _, name := range []string{"hosts", "procs"} {
		if len(layers) > 1 && layers[0].has(name) && layers[1].has(name) {
			s.fault(layers[1].at(name), name+" stands in site "+quote(s.Name)+", too", "keep one of the two")
		}
	}
	pos, procs := placeOf("hosts", layers...), placeOf("procs", layers...)
	listed = !pos.IsZero()
	switch {
	case listed && procs.IsZero():
		s.fault(pos, "hosts does not say how many procs each of them has", "add procs = 2 beside it")
	case !listed && !procs.IsZero():
		s.fault(procs, "procs is for the hosts of a list, and there is none", `add hosts = "127.0.0.[2-5]", or move procs into the host block`)
	}
	for _, p := range pick([]place(nil), "hosts", layers...) {
		n := int(pick(int64(1), "procs", layers...))
		s.Hosts = append(s.Hosts, Host{
			Address: p.at(s.opt.Addresses).(netip.Addr), Name: p.name,
			Procs: n, Auto: n == 0, Pos: pos, portPos: pos,
		})
	}
	return pos, listed
}

// countAuto finds how many procs the hosts with procs = "auto" have: what a scheduler has given, or
// this machine's cores. Those of other machines stay unknown.
func (b *builder) countAuto() {
	var here []*Host
	for _, s := range b.ours() {
		for i := range s.Hosts {
			h := &s.Hosts[i]
			if !h.Auto {
				continue
			}
			if b.opt.Tasks != nil {
				n, err := b.opt.Tasks(*h)
				if err != nil {
					b.fault(h.Pos, "how many procs the scheduler has given "+h.String()+" is not known: "+err.Error(), "write a number: procs = 4")
				}
				h.Procs = n
			}
			s.guessed = s.guessed || h.Procs == 0
			if h.Procs == 0 && h.Address.IsValid() && (b.opt.Local == nil || b.opt.Local(h.Address)) {
				here = append(here, h)
			}
		}
	}
	for i, h := range here {
		if b.opt.Cores > 0 { // the remaining cores go to the first hosts
			h.Procs = max(1, (b.opt.Cores+len(here)-1-i)/len(here))
		}
	}
}

// checkTwice reports two hosts of a site on one machine if srun starts the nodes, as it starts one
// on each machine.
func (s *siteDraft) checkTwice() {
	if s.Launch == nil || s.Launch.Engine != LaunchSlurm {
		return
	}
	for i, h := range s.Hosts {
		if slices.ContainsFunc(s.Hosts[:i], func(x Host) bool { return x.Name == h.Name && x.Address == h.Address }) {
			s.fault(h.Pos, h.String()+" is there twice, and srun starts one node on each machine", "write it once, with as many procs as both have")
			return
		}
	}
}

// checkElsewhere reports what keeps the hosts of a site that are on several machines from
// finding each other.
func (s *siteDraft) checkElsewhere() {
	if s.opt.Local == nil || !s.here() || !s.hostsKnown() || len(s.HostsHere(s.opt.Local)) == len(s.Hosts) {
		return
	}
	var unreachable []string
	pos, remedy := s.Pos, "write an address that this machine has on the network of the others"
	for _, h := range s.Hosts {
		if !h.Address.IsLoopback() {
			continue
		}
		unreachable, pos = append(unreachable, h.Address.String()), h.Pos
		if h.Name != "" {
			remedy = "give " + h.Name + " an address in /etc/hosts that this machine has on the network of the others, or write that address"
		}
	}
	switch {
	case len(unreachable) > 0:
		s.fault(pos, "the hosts of site "+quote(s.Name)+" are on several machines, and the others cannot reach "+hostlist.Compress(unreachable), remedy)
	case !s.Auth.Keyed && s.Launch == nil:
		s.fault(s.Pos, "site "+quote(s.Name)+" has hosts on several machines, which have no key in common",
			`add auth "key" { file = "job.key" }, and copy the key's file to all of them`)
	}
}
