package config

import (
	"cmp"
	"encoding/base64"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"aead.dev/minisign"
	"github.com/hashicorp/go-version"
	"github.com/zclconf/go-cty/cty"

	"github.com/openimpi/impi/internal/pluginlock"
)

// Plugin describes where a plugin comes from and which versions of it may be used.
type Plugin struct {
	Name    string
	Source  string   `hcl:"source"`  // see PluginSource
	Version string   `hcl:"version"` // a constraint; empty: any release
	Keys    []string `hcl:"keys"`    // minisign public keys, one of which must have signed each binary

	// SHA256 contains the checksums that a binary may have, by platform; the one of "" is for each
	// platform that is not named. Without any, the checksums of the lock file apply.
	SHA256 map[string]string `hcl:"sha256"`

	Pos Pos

	block *block
}

// Plugins is the part of a job file that is about plugins.
type Plugins struct {
	List []Plugin
	Dir  string // folder where plugins are installed, absolute
	Lock string // the path of the lock file
	Base string // the folder from which relative sources start, absolute
}

// LoadPlugins reads only the part of the file at path that is about plugins, since the whole file
// has faults before they are installed.
func LoadPlugins(path string) (*Plugins, Diagnostics) {
	f := &faults{file: path}
	src, dir := readJobFile(f, path)
	if dir == "" {
		return nil, f.list
	}
	root := decode(f, src, environment(os.Environ()), nil)
	if root == nil {
		return nil, f.sorted()
	}
	b := &builder{faults: f, root: root, dir: dir}
	b.plugins()
	if found := f.sorted(); found.HasErrors() {
		return nil, found
	}
	return &Plugins{List: b.result.Plugins, Dir: b.installedIn(), Lock: lockPath(b.dir), Base: b.dir}, f.sorted()
}

// Accepts reports whether p's constraint allows a version.
func (p *Plugin) Accepts(v *version.Version) bool {
	c, err := version.NewConstraint(cmp.Or(p.Version, ">= 0.0.0")) // the latter excludes pre-releases
	return err == nil && c.Check(v)
}

// Pinned returns the only checksum that the job file allows on a platform, or "".
func (p *Plugin) Pinned(platform string) string {
	if sum, ok := p.SHA256[platform]; ok {
		return sum
	}
	return p.SHA256[""]
}

// Unproved reports whether the first binary for a platform would be accepted on the word of a
// server alone: the source is a URL, and there are neither keys nor a checksum for the platform.
func (p *Plugin) Unproved(platform string) bool {
	return strings.HasPrefix(p.Source, "http") && len(p.Keys) == 0 && p.Pinned(platform) == ""
}

// lockFile is what the lock file says, read when it is needed.
type lockFile struct {
	read *pluginlock.Lock
	err  error
}

func lockPath(dir string) string { return filepath.Join(dir, pluginlock.Name) }

// installedIn is where install puts plugins: plugin_dir, or "plugins".
func (b *builder) installedIn() string {
	return absolute(b.dir, pick("plugins", "plugin_dir", b.root))
}

func (b *builder) plugins() {
	for _, in := range b.root.all("plugin") {
		p := Plugin{Name: in.label, Pos: in.pos, block: in}
		fill(&p, in)
		if !pluginlock.ValidName(p.Name) {
			b.fault(in.pos, quote(p.Name)+" is not a plugin's name", "write that of its transport: lower-case letters, digits and dashes")
		}
		if slices.Contains(b.builtins(), p.Name) {
			b.fault(in.pos, "plugin "+quote(p.Name)+" would never run: impi-node has a transport of that name itself", "give the plugin another name, that of its own transport")
		}
		if strings.HasPrefix(p.Source, "http") && len(p.Keys) == 0 && len(p.SHA256) == 0 && !in.has("keys") && !in.has("sha256") {
			b.fault(in.at("source"), "plugin "+quote(p.Name)+" has neither keys nor sha256, so whoever can write to that server decides what runs here",
				`add keys = ["RW..."], the public key of the plugin's maker, or sha256`)
		}
		b.result.Plugins = append(b.result.Plugins, p)
	}
}

func pluginCalled(b *builder, name string) (*Plugin, bool) {
	i := slices.IndexFunc(b.result.Plugins, func(p Plugin) bool { return p.Name == name })
	if i < 0 {
		return nil, false
	}
	return &b.result.Plugins[i], true
}

// installed finds the binary of a transport whose plugin is the name of a plugin block; if it is
// not, the result is false.
func installed(s *siteDraft, in *block, t *Transport) bool {
	p, ok := pluginCalled(s.builder, t.Plugin)
	switch {
	case !ok:
		return false
	case t.SHA256 != "":
		s.fault(in.at("sha256"), "the checksum of "+quote(p.Name)+" is that of its plugin block", "move sha256 there")
	case s.here():
		lockedPlugin(s, p, t)
	}
	return true
}

func lockedPlugin(s *siteDraft, p *Plugin, t *Transport) {
	if s.locked.read == nil && s.locked.err == nil {
		s.locked.read, s.locked.err = pluginlock.Read(lockPath(s.dir))
	}
	install, block := "impi-node plugins install -config "+s.file, p.block
	if s.locked.err != nil {
		s.fault(p.Pos, "the lock file: "+s.locked.err.Error(), "correct it, or delete it and run "+install)
		return
	}
	e, ok := s.locked.read.Plugins[p.Name]
	if !ok {
		s.fault(p.Pos, "plugin "+quote(p.Name)+" is not in "+pluginlock.Name, install)
		return
	}
	v, err := pluginlock.Version(e.Version)
	if err != nil || !p.Accepts(v) {
		s.fault(block.at("version"), "the job file wants "+p.wanted()+", and "+pluginlock.Name+" has "+e.Version, install+" -upgrade")
		return
	}
	platform := pluginlock.Platform()
	sum := e.SHA256[platform]
	path := pluginlock.Path(s.installedIn(), p.Name, e.Version, platform)
	switch pin := p.Pinned(platform); {
	case sum == "":
		s.fault(p.Pos, pluginlock.Name+" has no checksum of plugin "+quote(p.Name)+" "+e.Version+" for this platform, "+platform, install)
	case pin != "" && pin != sum:
		s.fault(block.at("sha256"), "the job file trusts "+pin[:12]+"..., and "+pluginlock.Name+" has "+sum[:12]+"... for "+e.Version,
			"correct sha256, or "+install+" -upgrade")
	default:
		if problem, _ := executableFault(path, path); problem != "" {
			s.fault(p.Pos, "plugin "+quote(p.Name)+" "+e.Version+" is not installed: there is no program "+quote(path), install)
			return
		}
		t.Path, t.SHA256, t.Version, t.Install = path, sum, e.Version, install
	}
}

func (p *Plugin) wanted() string {
	if p.Version == "" {
		return "a release of " + quote(p.Name)
	}
	return quote(p.Name) + " " + p.Version
}

// The sorts of sources.
const (
	SourceFolder = "folder"
	SourceWeb    = "web"
	SourceOCI    = "oci"
)

// PluginSource returns the kind of a source that has no faults, and where it is: a URL, or a path.
func PluginSource(source string) (sort, at string) {
	if at, ok := strings.CutPrefix(source, "oci:"); ok {
		return SourceOCI, at
	}
	if strings.HasPrefix(source, "https:") || strings.HasPrefix(source, "http:") {
		return SourceWeb, source
	}
	return SourceFolder, source
}

const longestSource = 1024

func pluginSource() kind {
	return written("a folder, a URL or an OCI layout", `"https://plugins.example.org"`, func(s string) (any, *wrong) {
		if problem, remedy := sourceFault(s); problem != "" {
			return nil, &wrong{problem: problem, remedy: remedy, element: -1}
		}
		return s, nil
	})
}

func sourceFault(s string) (problem, remedy string) {
	if len(s) > longestSource || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "it is too long, or has control characters", `write https://..., a folder as "./mirror", or "oci:./layout"`
	}
	switch sort, at := PluginSource(s); {
	case sort == SourceWeb:
		return urlFault(at)
	case sort == SourceOCI && at == "":
		return "it names no folder", `write "oci:./layout"`
	case sort == SourceFolder && strings.Contains(at, "://"):
		return quote(s) + " is neither https nor a folder", `write https://..., a folder as "./mirror", or "oci:./layout"`
	case sort == SourceFolder && at != "." && at != ".." && !strings.HasPrefix(at, "/") && !strings.HasPrefix(at, "./") && !strings.HasPrefix(at, "../"):
		return quote(s) + " could be a folder or a server", `write https://` + s + `, or "./` + s + `"`
	}
	return "", ""
}

func urlFault(s string) (problem, remedy string) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "":
		return "it is not a URL", "write it like https://plugins.example.org/impi"
	case u.User != nil:
		return "it has a user's name or password, which would be written to " + pluginlock.Name, "leave them out: mirrors are read without"
	case u.RawQuery != "" || u.Fragment != "":
		return "it has a ? or a #", "write the address of the folder that has the index"
	case u.Scheme == "http" && !LoopbackHost(u.Hostname()):
		return "plain http is for this machine only", "write https://" + strings.TrimPrefix(s, "http://")
	}
	return "", ""
}

// LoopbackHost reports whether a URL's host can only be this machine.
func LoopbackHost(name string) bool {
	a, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && a.IsLoopback()
}

func versionConstraint() kind {
	return written("a version constraint", `"~> 1.2"`, func(s string) (any, *wrong) {
		if len(s) > 200 {
			return nil, &wrong{problem: "it is longer than 200 characters", element: -1}
		}
		if _, err := version.NewConstraint(s); err != nil {
			return nil, &wrong{problem: quote(s) + " is not a version constraint",
				remedy: `write "1.2.3", "~> 1.2" (from 1.2 to before 2), "~> 1.2.3" (to before 1.3) or ">= 1.2, != 1.2.4, < 3"`, element: -1}
		}
		return s, nil
	})
}

// checksums parses one SHA-256, or several by platform, to a map[string]string.
func checksums() kind {
	one := checksum()
	k := one
	k.want = "a SHA-256 in 64 hex digits, or several by platform"
	k.example = `"..." with what sha256sum prints, or { linux_amd64 = "..." }`
	k.parse = func(v cty.Value) (any, *wrong) {
		if isString(v) {
			sum, bad := one.parse(v)
			if bad != nil {
				return nil, bad
			}
			return map[string]string{"": sum.(string)}, nil
		}
		all, bad := stringMap().parse(v)
		if bad != nil {
			return nil, bad
		}
		m := all.(map[string]string)
		if len(m) == 0 {
			return nil, mismatch
		}
		for platform, sum := range m {
			if !pluginlock.ValidPlatform(platform) {
				return nil, &wrong{problem: quote(platform) + " is not a platform", remedy: `write it like { ` + pluginlock.Platform() + ` = "..." }`, element: -1}
			}
			if m[platform] = strings.ToLower(sum); !pluginlock.ValidSum(m[platform]) {
				return nil, &wrong{problem: "that of " + platform + " is not a SHA-256 in 64 hex digits", element: -1}
			}
		}
		return m, nil
	}
	return k
}

// publicKeys is a list of minisign public keys.
func publicKeys() kind {
	k := words(`["RWQ..."]`)
	k.want = "a list of minisign public keys"
	parse := k.parse
	k.parse = func(v cty.Value) (any, *wrong) {
		list, bad := parse(v)
		if bad != nil {
			return nil, bad
		}
		for i, s := range list.([]string) {
			var key minisign.PublicKey
			if raw, err := base64.StdEncoding.DecodeString(s); err != nil || len(raw) != 42 || key.UnmarshalText([]byte(s)) != nil {
				return nil, &wrong{problem: "that is not a minisign public key", remedy: "write the second line of minisign.pub, which begins with RW", element: i}
			}
		}
		return list, nil
	}
	return k
}
