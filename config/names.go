package config

import (
	"cmp"
	"net/netip"
)

// maxScope is the most bytes of a scope, as internal/names has it.
const maxScope = 64

// Names configures where a site's procs publish and look up the names of ports, and who may.
type Names struct {
	// Server is the address of an impi-server -names, which several jobs share. The zero
	// value stands for the job's own server, whose names only this job sees.
	Server     netip.AddrPort `hcl:"server"`
	ServerName string         // the host name that the file has for Server, if any
	Scope      string         `hcl:"scope"` // scope of names for which the program gives none
	Auth       Auth           // authentication at Server
	Pos        Pos            // zero without a block
}

// Shared reports whether names are kept by a server that other jobs use too.
func (n *Names) Shared() bool { return n.Server.IsValid() || n.ServerName != "" }

// names takes s's names block or that of the whole file: only one of them applies, as a whole,
// since the key belongs to the server.
func (s *siteDraft) names() {
	in := cmp.Or(s.block.only("names"), s.root.only("names"))
	if in == nil {
		return
	}
	s.Names = Names{Pos: in.pos}
	fill(&s.Names, in)
	s.Names.ServerName = nameIn("server", in)
	if len(s.Names.Scope) > maxScope || s.Names.Scope == "job" {
		s.fault(in.at("scope"), quote(s.Names.Scope)+" cannot be a scope", "write another word, of at most "+itoa(maxScope)+" bytes")
	}
	s.authOf(in.all("auth"), &s.Names.Auth)
	if len(in.all("auth")) == 0 {
		s.fault(in.pos, "names has no auth: anybody could pretend to be the server",
			`add auth "key" { file = "names.key" }, or auth "none" {} if that is wanted`)
	}
}

var blockNames = &blockSpec{name: "names", attrs: []attrSpec{
	{name: "server", kind: endpoint(1), required: true},
	{name: "scope", kind: text("a word", "chem")},
}, blocks: []*blockSpec{blockAuth}}
