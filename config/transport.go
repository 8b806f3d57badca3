package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// transports lists the transports that s's routes may name. A block in the site replaces the whole
// block of that name at the top of the file.
func (s *siteDraft) transports() {
	blocks := s.transportBlocks()
	optional := names(s.opt.Builtins, true)
	for _, name := range names(s.opt.Builtins, false) {
		known, _ := known(s.opt.Builtins, name)
		t := Transport{Name: name, Builtin: true, Known: known}
		if in := blocks[name]; in != nil {
			t = s.transport(in)
		}
		s.Transports = append(s.Transports, t)
	}
	for _, name := range optional {
		if in := blocks[name]; in != nil {
			s.Transports = append(s.Transports, s.transport(in))
		}
	}
	for _, layer := range []*block{s.root, s.block} {
		for _, in := range layer.all("transport") {
			if blocks[in.label] != in || slices.Contains(s.builtins(), in.label) {
				continue
			}
			t := s.transport(in)
			s.Transports = append(s.Transports, t)
			if meant := nearest(t.Name, optional); t.Plugin == "" && blocks[meant] == nil && meant != "" {
				t.Name = meant // so that routes with the corrected name find it
				s.Transports = append(s.Transports, t)
			}
		}
	}
}

func (b *builder) builtins() []string {
	return append(names(b.opt.Builtins, false), names(b.opt.Builtins, true)...)
}

func (s *siteDraft) transportBlocks() map[string]*block {
	blocks := map[string]*block{}
	for _, layer := range []*block{s.root, s.block} {
		for _, in := range layer.all("transport") {
			blocks[in.label] = in
		}
	}
	return blocks
}

func (s *siteDraft) transport(in *block) Transport {
	t := Transport{
		Name: in.label,
		Dir:  s.dir,
		Pos:  in.pos,
	}
	fill(&t, in)
	if _, known := pluginCalled(s.builder, t.Name); t.Plugin == "" && known && !slices.Contains(s.builtins(), t.Name) {
		t.Plugin = t.Name
	}
	if t.Plugin == "" {
		t.Known, t.Builtin = known(s.opt.Builtins, t.Name)
	}
	s.checkTransport(in, &t)
	if config := in.only("config"); config != nil {
		t.settings = config.pos
		for name, v := range config.values {
			t.Settings = append(t.Settings, Setting{Name: name, Value: v.v, Pos: v.pos})
		}
		slices.SortFunc(t.Settings, func(x, y Setting) int { return x.Pos.Line*1e4 + x.Pos.Column - y.Pos.Line*1e4 - y.Pos.Column })
	}
	return t
}

func (s *siteDraft) checkTransport(in *block, t *Transport) {
	switch {
	case strings.Trim(t.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || t.Name[0] < 'a':
		s.fault(in.pos, quote(t.Name)+" is not a transport's name", "write lower-case letters, digits and dashes")
	case t.Name == NativeName:
		s.fault(in.pos, quote(t.Name)+" is not a transport's name: in routes it is the site's own MPI", "write another name, or a native block in the site")
	case len(t.Name) > 32:
		s.fault(in.pos, quote(t.Name)+" is too long for a transport's name", "write at most 32 letters, digits and dashes")
	case t.Builtin && t.SHA256 != "":
		s.fault(in.at("sha256"), "transport "+quote(t.Name)+" is built in and has no binary to check", "remove sha256, or add plugin")
	case t.Builtin && t.NoMTLS:
		s.fault(in.at("auto_mtls"), "transport "+quote(t.Name)+" is built in and has AutoMTLS", "remove auto_mtls, or add plugin")
	case t.Free && t.Apart:
		s.fault(in.at("user_namespace"), "a plugin with confine = false has all rights of its node, and no user namespace of its own", "remove user_namespace or confine")
	case t.Plugin == "" && !t.Builtin && !in.has("plugin"):
		remedy := `add plugin = "impi-transport-` + t.Name + `", or a block plugin ` + quote(t.Name) + `; built in: ` + strings.Join(s.builtins(), ", ")
		if near := nearest(t.Name, s.builtins()); near != "" {
			remedy = "did you mean " + quote(near) + "? or " + remedy
		}
		s.fault(in.pos, "transport "+quote(t.Name)+" is not built in and has no plugin", remedy)
	case installed(s, in, t):
	case t.Plugin != "" && s.here():
		path := s.pluginPath(t.Plugin)
		problem, _ := executableFault(absolute(s.dir, path), s.shown(path))
		if problem != "" {
			s.fault(in.at("plugin"), problem, "install the plugin there, or correct plugin or plugin_dir")
			return
		}
		t.Path = absolute(s.dir, path)
	}
}

// Precision configures the type in which numbers travel in messages.
type Precision struct {
	Double string `hcl:"double"` // Float
}

// Float makes doubles travel as floats.
const Float = "float"

func (p *Precision) String() string {
	if p == nil {
		return "none"
	}
	return "double = " + p.Double
}

// Compress configures how a site compresses the bytes that it sends on links of a route.
type Compress struct {
	Algorithm string `hcl:"algorithm"`
	Level     int    `hcl:"level"` // 1 to 19, as in the tool zstd
	Min       int    `hcl:"min"`   // minimum number of bytes sent together that are compressed
}

// Zstd is the algorithm of RFC 8878, the only one.
const Zstd = "zstd"

func (c *Compress) String() string {
	if c == nil {
		return "none"
	}
	return fmt.Sprintf("%s, level %d, from %d bytes", c.Algorithm, c.Level, c.Min)
}

// routes sets the routes of s: its own, and those at the top of the file with labels that its own
// do not have.
func (s *siteDraft) routes() {
	blocks := s.block.all("route")
	for _, in := range s.root.all("route") {
		same := func(own *block) bool { return own.label == in.label }
		if !slices.ContainsFunc(s.block.all("route"), same) {
			blocks = append(blocks, in)
		}
	}
	for _, in := range blocks {
		s.checkRoute(in)
		r := s.defaultRoute()
		if in.has("data_plane") { // shared memory may support none of these data planes
			r.Prefer = s.transportNames()
		}
		r.Site, r.Pos = in.label, in.pos
		fill(&r, in)
		r.Resume = r.Resume || !in.has("resume") && suspects(s, r)
		s.readNative(&r, in)
		readCompress(s, &r, in)
		readPrecision(s, &r, in)
		r.AllowPlain = requirement(in) == TLSOptional
		r.Closed = s.closes(r)
		s.Routes = append(s.Routes, r)
	}
	if r := s.defaultRoute(); suspects(s, r) && !slices.ContainsFunc(blocks, func(in *block) bool { return in.label == "*" }) {
		r.Resume, r.Closed = true, s.closes(r)
		s.Routes = append(s.Routes, r)
	}
}

func readCompress(s *siteDraft, r *Route, in *block) {
	written := in.only("compress")
	if written == nil {
		return
	}
	r.Compress = defaultCompress()
	fill(r.Compress, written)
	if toForeign(s, in) {
		s.fault(written.pos, "site "+quote(in.label)+" runs another MPI, and what goes there is never compressed", "remove the compress block")
	}
}

func readPrecision(s *siteDraft, r *Route, in *block) {
	written := in.only("precision")
	if written == nil {
		return
	}
	r.Precision = &Precision{}
	fill(r.Precision, written)
	switch {
	case toForeign(s, in):
		s.fault(written.pos, "site "+quote(in.label)+" runs another MPI, to which all numbers go as they are", "remove the precision block")
	case in.label == s.Name:
		s.fault(written.pos, "inside a site all numbers go as they are", "remove the precision block, or move it to the route to another site")
	case in.has("representation"):
		s.fault(written.pos, "representation says already in which form numbers travel", "remove representation or the precision block")
	}
}

func toForeign(s *siteDraft, in *block) bool {
	return slices.ContainsFunc(s.sites, func(other *siteDraft) bool { return other.Name == in.label && other.Foreign })
}

// readNative moves the site's own MPI from the transports of a route to its Native and NativeAt.
func (s *siteDraft) readNative(r *Route, in *block) {
	at := slices.Index(r.Prefer, NativeName)
	switch {
	case at >= 0 && len(r.Prefer) == 1 && in.has("data_plane"):
		s.fault(in.at("data_plane"), "the site's own MPI has no data planes", "remove data_plane, or add a transport to prefer")
		fallthrough
	case at >= 0:
		r.Prefer = slices.DeleteFunc(slices.Clone(r.Prefer), func(name string) bool { return name == NativeName })
		r.Native, r.NativeAt = true, at
	case !in.has("prefer") && s.hasNative() && in.label == s.Name:
		s.preferNative(r)
	}
}

func (s *siteDraft) hasNative() bool { return s.block.only(NativeName) != nil }

func (s *siteDraft) checkRoute(in *block) {
	for i, name := range pick([]string(nil), "prefer", in) {
		pos := elementOf("prefer", i, in)
		if name == NativeName {
			if !s.hasNative() || in.label != s.Name {
				s.fault(pos, "the site's own MPI is for the way from a site with a native block to itself", "remove "+quote(name)+", or move it into the route of such a site to itself, in the site's block")
			}
			continue
		}
		if _, known := s.Transport(name); known {
			continue
		}
		problem := "there is no transport " + quote(name)
		if s.anybodyHas(name) {
			problem = "site " + quote(s.Name) + " has no transport " + quote(name)
		}
		s.fault(pos, problem, meant(name, s.transportNames()))
	}
	if !s.result.Complete || in.label == "*" {
		return
	}
	var names []string
	for _, other := range s.sites {
		names = append(names, other.Name)
	}
	if !slices.Contains(names, in.label) {
		s.fault(in.pos, "no site is called "+quote(in.label), meant(in.label, append(names, "*")))
	}
}

func (b *builder) anybodyHas(name string) bool {
	return slices.ContainsFunc(b.ours(), func(s *siteDraft) bool { return s.transportBlocks()[name] != nil })
}

// The bounds of a plugin's own environment: the kernel takes no variable of 128 KiB.
const (
	mostPluginEnv     = 64
	longestPluginName = 128
	longestPluginText = 32 << 10
)

// nodeOwn are the prefixes of the variables by which a node tells a plugin what to do.
var nodeOwn = []string{"IMPI_", "PLUGIN_"}

// pluginEnv is a stringMap whose names a node does not use itself.
func pluginEnv() kind {
	k := stringMap()
	k.example = `{ FI_PROVIDER = "tcp" }`
	parse := k.parse
	k.parse = func(v cty.Value) (any, *wrong) {
		x, bad := parse(v)
		if bad != nil {
			return nil, bad
		}
		m := x.(map[string]string)
		if len(m) > mostPluginEnv {
			return nil, &wrong{problem: "there are " + itoa(len(m)) + " variables, more than " + itoa(mostPluginEnv), element: -1}
		}
		for _, name := range slices.Sorted(maps.Keys(m)) {
			if problem := pluginEnvFault(name, m[name]); problem != "" {
				return nil, &wrong{problem: problem, element: -1}
			}
		}
		return m, nil
	}
	return k
}

// pluginEnvFault says what is wrong with a variable, without its value, which may be a secret.
func pluginEnvFault(name, text string) string {
	switch {
	case len(name) > longestPluginName:
		return quote(name[:longestPluginName]) + "... is longer than " + itoa(longestPluginName) + " bytes"
	case strings.Contains(text, "\x00"):
		return "the value of " + quote(name) + " has a NUL byte"
	case len(text) > longestPluginText:
		return "the value of " + quote(name) + " is longer than " + itoa(longestPluginText) + " bytes"
	case slices.ContainsFunc(nodeOwn, func(own string) bool { return strings.HasPrefix(name, own) }):
		return quote(name) + " is the node's own: it tells a plugin what to do by IMPI_... and PLUGIN_..."
	}
	return ""
}
