package config

import (
	"slices"
	"strings"
)

// transports lists what s's routes may name. A transport block in the site
// stands for the whole of one at the top of the file.
func (b *builder) transports(s *siteDraft) {
	blocks := b.transportBlocks(s)
	optional := names(b.opt.Builtins, true)
	for _, name := range names(b.opt.Builtins, false) {
		known, _ := known(b.opt.Builtins, name)
		t := Transport{Name: name, Builtin: true, Known: known}
		if in := blocks[name]; in != nil {
			t = b.transport(s, in)
		}
		s.Transports = append(s.Transports, t)
	}
	for _, name := range optional {
		if in := blocks[name]; in != nil {
			s.Transports = append(s.Transports, b.transport(s, in))
		}
	}
	for _, layer := range []*block{b.root, s.block} {
		for _, in := range layer.all("transport") {
			if blocks[in.label] != in || slices.Contains(b.builtins(), in.label) {
				continue
			}
			t := b.transport(s, in)
			s.Transports = append(s.Transports, t)
			if meant := nearest(t.Name, optional); t.Plugin == "" && blocks[meant] == nil && meant != "" {
				t.Name = meant // for routes that have it right
				s.Transports = append(s.Transports, t)
			}
		}
	}
}

// builtins are the names of all transports that need no plugin.
func (b *builder) builtins() []string {
	return append(names(b.opt.Builtins, false), names(b.opt.Builtins, true)...)
}

// transportBlocks has the block that counts for each name.
func (b *builder) transportBlocks(s *siteDraft) map[string]*block {
	blocks := map[string]*block{}
	for _, layer := range []*block{b.root, s.block} {
		for _, in := range layer.all("transport") {
			blocks[in.label] = in
		}
	}
	return blocks
}

func (b *builder) transport(s *siteDraft, in *block) Transport {
	t := Transport{
		Name:   in.label,
		Plugin: pick("", "plugin", in),
		SHA256: pick("", "sha256", in),
		NoMTLS: !pick(true, "auto_mtls", in),
		Dir:    b.dir,
		Pos:    in.pos,
	}
	if t.Plugin == "" {
		t.Known, t.Builtin = known(b.opt.Builtins, t.Name)
	}
	b.checkTransport(s, in, &t)
	if config := in.only("config"); config != nil {
		t.settings = config.pos
		for name, v := range config.values {
			t.Settings = append(t.Settings, Setting{Name: name, Value: v.v, Pos: v.pos})
		}
		slices.SortFunc(t.Settings, func(x, y Setting) int { return x.Pos.Line*1e4 + x.Pos.Column - y.Pos.Line*1e4 - y.Pos.Column })
	}
	return t
}

func (b *builder) checkTransport(s *siteDraft, in *block, t *Transport) {
	switch {
	case strings.Trim(t.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || t.Name[0] < 'a':
		b.fault(in.pos, quote(t.Name)+" is not a transport's name", "write lower-case letters, digits and dashes")
	case len(t.Name) > 32:
		b.fault(in.pos, quote(t.Name)+" is too long for a transport's name", "write at most 32 letters, digits and dashes")
	case t.Builtin && t.SHA256 != "":
		b.fault(in.at("sha256"), "transport "+quote(t.Name)+" is built in and has no binary to check", "remove sha256, or add plugin")
	case t.Builtin && t.NoMTLS:
		b.fault(in.at("auto_mtls"), "transport "+quote(t.Name)+" is built in and has AutoMTLS", "remove auto_mtls, or add plugin")
	case t.Plugin == "" && !t.Builtin && !in.has("plugin"):
		remedy := `add plugin = "impi-transport-` + t.Name + `"; built in: ` + strings.Join(b.builtins(), ", ")
		if near := nearest(t.Name, b.builtins()); near != "" {
			remedy = "did you mean " + quote(near) + "? or " + remedy
		}
		b.fault(in.pos, "transport "+quote(t.Name)+" is not built in and has no plugin", remedy)
	case t.Plugin != "" && b.here(s):
		path := b.pluginPath(t.Plugin)
		problem, _ := executableFault(absolute(b.dir, path), b.shown(path))
		if problem != "" {
			b.fault(in.at("plugin"), problem, "install the plugin there, or correct plugin or plugin_dir")
			return
		}
		t.Path = absolute(b.dir, path)
	}
}

// routes takes the routes that hold for s: its own, and those at the top of the
// file whose label it has no own one for.
func (b *builder) routes(s *siteDraft) {
	blocks := s.block.all("route")
	for _, in := range b.root.all("route") {
		same := func(own *block) bool { return own.label == in.label }
		if !slices.ContainsFunc(s.block.all("route"), same) {
			blocks = append(blocks, in)
		}
	}
	for _, in := range blocks {
		b.checkRoute(s, in)
		tls, said := get[bool](in, "require_tls")
		r := Route{
			Site:           in.label,
			Prefer:         pick(s.transportNames(), "prefer", in),
			Direct:         pick(true, "direct", in),
			DataPlane:      pick([]string(nil), "data_plane", in),
			RequireTLS:     tls,
			AllowPlain:     said && !tls,
			Resume:         pick(defaultResume, "resume", in),
			Representation: Representation(pick("", "representation", in)),
			Pos:            in.pos,
		}
		r.Closed = s.closes(r)
		s.Routes = append(s.Routes, r)
	}
}

func (b *builder) checkRoute(s *siteDraft, in *block) {
	for i, name := range pick([]string(nil), "prefer", in) {
		if _, known := s.Transport(name); known {
			continue
		}
		pos := in.at("prefer")
		if elements := in.values["prefer"].elements; i < len(elements) {
			pos = elements[i]
		}
		problem := "there is no transport " + quote(name)
		if b.anybodyHas(name) {
			problem = "site " + quote(s.Name) + " has no transport " + quote(name)
		}
		b.fault(pos, problem, meant(name, s.transportNames()))
	}
	if !b.result.Complete || in.label == "*" {
		return
	}
	var names []string
	for _, other := range b.sites {
		names = append(names, other.Name)
	}
	if !slices.Contains(names, in.label) {
		b.fault(in.pos, "no site is called "+quote(in.label), meant(in.label, append(names, "*")))
	}
}

// anybodyHas tells whether some site has a transport called name.
func (b *builder) anybodyHas(name string) bool {
	return slices.ContainsFunc(b.ours(), func(s *siteDraft) bool { return b.transportBlocks(s)[name] != nil })
}
