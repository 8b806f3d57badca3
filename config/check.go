package config

import (
	"net/netip"
	"slices"
	"strings"
)

// checkRanks reports client ranks that two sites have, and missing ones if the
// file describes the whole job.
func (b *builder) checkRanks() {
	holder := map[int]*siteDraft{}
	for _, s := range b.sites {
		if !s.ranks {
			continue
		}
		if first := holder[s.Client]; first != nil {
			b.fault(s.block.at("client"), "site "+quote(first.Name)+" in line "+itoa(first.Pos.Line)+
				" has client rank "+itoa(s.Client)+" already", b.freeRank())
			continue
		}
		holder[s.Client] = s
	}
	expected := b.expected()
	for _, s := range b.sites {
		if s.ranks && expected > 0 && s.Client >= expected {
			b.fault(s.block.at("client"), "the job has "+plural(expected, "client")+" and so no client rank "+itoa(s.Client), b.freeRank())
		}
	}
}

// expected is the number of clients of the job, or 0 if the file does not tell.
func (b *builder) expected() int {
	if b.result.Complete {
		return len(b.sites)
	}
	for _, s := range b.sites {
		if s.Server.Embedded {
			return s.Server.Clients
		}
	}
	return 0
}

// freeRank proposes a client rank that nobody has.
func (b *builder) freeRank() string {
	for rank := range maxClients {
		taken := func(s *siteDraft) bool { return s.ranks && s.Client == rank }
		if !slices.ContainsFunc(b.sites, taken) {
			return "client = " + itoa(rank) + " is free; ranks start at 0 without holes"
		}
	}
	return "a job has at most " + itoa(maxClients) + " clients"
}

func (b *builder) checkTrace(s *siteDraft, pos Pos, trace string) {
	if s.Procs() > 1 && !strings.Contains(trace, "%r") {
		b.fault(pos, "several procs would write their packets to one file", `put %r, the rank, into the name: "packets-%r.txt"`)
	}
}

// checkTogether reports what is right in each site and wrong in all of them.
func (b *builder) checkTogether() {
	b.checkPorts()
	b.checkAgreement()
	b.checkDialects()
	b.checkKeys()
}

// hostBlocks are the host blocks that hold for s.
func (b *builder) hostBlocks(s *siteDraft) []*block {
	blocks := s.block.all("host")
	if len(b.ours()) == 1 {
		blocks = append(blocks, b.root.all("host")...)
	}
	return blocks
}

// checkPorts reports listeners that two parts of the job want, and those that
// cannot be opened.
func (b *builder) checkPorts() {
	taken := map[netip.AddrPort]string{}
	claim := func(s *siteDraft, at netip.AddrPort, pos Pos, who string) {
		if at.Port() == 0 || !at.Addr().IsValid() {
			return
		}
		if first, again := taken[at]; again {
			b.fault(pos, first+" listens on "+at.String()+" too", "write another port, or 0 for any free one")
			return
		}
		taken[at] = who
		if b.opt.CheckPort == nil || !b.here(s) {
			return
		}
		if err := b.opt.CheckPort(at); err != nil {
			b.fault(pos, "cannot listen on "+at.String()+": "+err.Error(), "write another port, or 0 for any free one")
		}
	}
	for _, s := range b.ours() {
		if s.Server.Embedded {
			claim(s, s.Server.Address, s.Server.Pos, "the embedded server")
		}
		for i, h := range b.hostBlocks(s) {
			claim(s, netip.AddrPortFrom(s.Hosts[i].Address, s.Hosts[i].Port), h.at("port"), "a host of site "+quote(s.Name))
		}
	}
}

// checkAgreement reports values that all clients must have in common. IMPI ch.2:
// XSIZE and MAXLINEAR are compared after -1 was replaced.
func (b *builder) checkAgreement() {
	ours := b.ours()
	type common struct {
		name     string
		of       func(Protocol) int32
		fallback int32
	}
	for _, c := range []common{
		{"xsize", func(p Protocol) int32 { return p.XSize }, 1024},
		{"maxlinear", func(p Protocol) int32 { return p.MaxLinear }, 4},
	} {
		value := func(s *siteDraft) int32 {
			if v := c.of(s.Protocol); v >= 0 {
				return v
			}
			return c.fallback
		}
		for _, s := range ours[min(1, len(ours)):] {
			if value(s) != value(ours[0]) {
				own, shared := b.layers(s, "protocol")
				pos := placeOf(c.name, own, shared)
				if pos.IsZero() {
					pos = s.Pos
				}
				b.fault(pos, c.name+" is "+itoa(int(value(s)))+" here and "+itoa(int(value(ours[0])))+" in site "+quote(ours[0].Name)+": they must agree",
					"write it once, in a protocol block at the top of the file")
			}
		}
	}
}

// checkKeys reports sites that the file's own server would turn away.
func (b *builder) checkKeys() {
	home := b.embedding()
	if home == nil {
		return
	}
	for _, s := range b.ours() {
		pos := s.Pos
		if auth := s.block.only("auth"); auth != nil {
			pos = auth.pos
		}
		switch {
		case s.Auth.Random || home.Auth.Random:
		case s.Auth.Keyed && home.Auth.Keyed:
			if s.Auth.Key != home.Auth.Key && b.here(s) && b.here(home) {
				b.fault(pos, "site "+quote(s.Name)+" has another key than site "+quote(home.Name)+", which runs the server",
					"give all sites one key: put auth into the job block")
			}
		case !s.Auth.None || !home.Auth.None:
			b.fault(pos, "site "+quote(s.Name)+" and site "+quote(home.Name)+", which runs the server, have no authentication in common",
				"put auth into the job block")
		}
	}
}

// embedding is the site with the embedded server, or nil.
func (b *builder) embedding() *siteDraft {
	for _, s := range b.sites {
		if s.Server.Embedded {
			return s
		}
	}
	return nil
}
