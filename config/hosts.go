package config

import (
	"net/netip"
	"slices"

	"github.com/openimpi/impi/internal/hostlist"
)

// sharedHosts reports hosts at the top of a file with several sites: those are meant for
// the only one.
func (b *builder) sharedHosts() {
	if len(b.ours()) < 2 {
		return
	}
	for _, name := range []string{"hosts", "procs"} {
		if b.root.has(name) {
			b.fault(b.root.at(name), name+" could be of any of the file's sites", "move it into a site block")
		}
	}
	for _, h := range b.root.all("host") {
		b.fault(h.pos, "this host could be of any of the file's sites", "move it into a site block")
	}
}

// hostLayers are the blocks that may say which hosts s has, the stronger one first: s's own,
// and the file in a file of one site.
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
		same := func(x Host) bool { return x.Address == host.Address && x.Address.IsValid() }
		if slices.ContainsFunc(s.Hosts[:list], same) { // one host or two is not to be guessed
			s.fault(h.at("address"), "hosts in line "+itoa(listPos.Line)+" has "+host.Address.String()+", too",
				"take it out of hosts: the block says more of it")
		}
		s.Hosts = append(s.Hosts, host)
	}
	s.checkElsewhere(listPos, s.Hosts[:list])
	for i, h := range blocks {
		s.checkElsewhere(h.at("address"), s.Hosts[list+i:list+i+1])
	}
	if !listed && len(blocks) == 0 && len(s.root.all("host")) == 0 {
		s.fault(s.Pos, "site "+quote(s.Name)+" has no host", `add host { address = "127.0.0.1"  procs = 2 }`)
	}
}

// listedHosts takes the attributes hosts and procs. listed tells whether there is a list, even
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
	for _, a := range pick([]netip.Addr(nil), "hosts", layers...) {
		s.Hosts = append(s.Hosts, Host{Address: a, Procs: int(pick(int64(1), "procs", layers...)), Pos: pos, portPos: pos})
	}
	return pos, listed
}

// checkElsewhere reports hosts of other machines in a site that is run on this one.
func (s *siteDraft) checkElsewhere(pos Pos, hosts []Host) {
	if s.opt.Local == nil || !s.here() {
		return
	}
	var others []string
	for _, h := range hosts {
		if h.Address.IsValid() && !s.opt.Local(h.Address) {
			others = append(others, h.Address.String())
		}
	}
	if len(others) == 0 {
		return
	}
	are := " is no address of this machine"
	if len(others) > 1 {
		are = " are no addresses of this machine"
	}
	s.fault(pos, "site "+quote(s.Name)+" is run by one node, and "+hostlist.Compress(others)+are,
		"write an address that this machine has, or make the other machine a site of its own")
}
