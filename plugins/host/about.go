package host

import (
	"github.com/openimpi/impi/plugins/sdk/proto"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// About is what a running plugin says of itself, for operators.
type About struct {
	transports.Info
	SDK          string // name and version of the library that the plugin uses
	Protocol     int    // version of the transport protocol that was agreed on
	Newest       int    // highest version that the plugin speaks
	Lacks        []proto.Addition
	Problem      string // from its Health at the start; empty if it has no problem
	MTLS         bool   // the control connection is protected by TLS, with keys of this start
	Path         string // of the binary
	Digest       string // its SHA-256, in hex; empty for a built-in one that is not pinned
	Schema       []transports.Setting
	Capabilities transports.Capabilities
}

// About returns what the plugin said when it last started.
func (p *Plugin) About() About {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := About{
		Info: p.info, MTLS: !p.cfg.NoMTLS, Path: p.status.Path, Digest: p.status.Digest,
		Schema: append([]transports.Setting(nil), p.schema...), Capabilities: p.caps,
	}
	if p.last != nil {
		a.SDK, a.Protocol, a.Newest = p.last.sdk, p.last.protocol, p.last.newest
		a.Lacks, a.Problem = proto.Lacking(p.last.protocol), p.last.problem
	}
	return a
}
