package config

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// mustLoad loads a file that has no faults.
func mustLoad(t *testing.T, path string) *Job {
	t.Helper()
	privateKeys(t)
	opt := testOptions()
	opt.Environ = append(opt.Environ, "HOME=/srv/ann")
	job, diags := Load(path, opt)
	if len(diags) > 0 || job == nil {
		var text strings.Builder
		_ = diags.WriteText(&text, false)
		t.Fatalf("%s does not load:\n%s", path, &text)
	}
	return job
}

// loadText loads a file that holds text, beside the other files of testdata.
func loadText(t *testing.T, text string) (*Job, Diagnostics) {
	t.Helper()
	dir, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	return load(&faults{file: "testdata/job.hcl"}, []byte(text), dir, testOptions())
}

func mustSite(t *testing.T, j *Job, name string) Site {
	t.Helper()
	s, ok := j.Site(name)
	if !ok {
		t.Fatalf("no site %q", name)
	}
	return s
}

func TestFullFile(t *testing.T) {
	j := mustLoad(t, "testdata/full.hcl")
	if !j.Complete || len(j.Sites) != 4 {
		t.Fatalf("complete %t, %d sites", j.Complete, len(j.Sites))
	}
	alpha, beta, gamma, lam := j.Sites[0], j.Sites[1], j.Sites[2], j.Sites[3]

	t.Run("server", func(t *testing.T) {
		at := netip.MustParseAddrPort("127.0.0.1:7800")
		want := Server{Embedded: true, Address: at, Clients: 4, Timeout: 45 * time.Second, Pos: alpha.Server.Pos, Ours: true, TLS: TLSOptional}
		if !reflect.DeepEqual(alpha.Server, want) {
			t.Errorf("alpha has %+v", alpha.Server)
		}
		for _, s := range []Site{beta, gamma} {
			if s.Server.Embedded || s.Server.Address != at || s.Server.Clients != 0 {
				t.Errorf("%s has %+v", s.Name, s.Server)
			}
		}
		if home := serverSite(j); home.Name != "alpha" {
			t.Errorf("server in %q", home.Name)
		}
	})
	t.Run("auth", func(t *testing.T) {
		for _, s := range []Site{alpha, beta, gamma} {
			if s.Auth != (Auth{Keyed: true, Key: 0x00c0ffee00c0ffee, File: "job.key"}) {
				t.Errorf("%s has %+v", s.Name, s.Auth)
			}
		}
	})
	t.Run("hosts", func(t *testing.T) {
		if alpha.Procs() != 3 || len(alpha.Hosts) != 2 || alpha.Hosts[0].Port != 7801 || alpha.Hosts[1].Procs != 1 {
			t.Errorf("alpha has %+v", alpha.Hosts)
		}
		if gamma.Procs() != 2 || len(gamma.Hosts) != 2 || gamma.Hosts[1].Address != netip.MustParseAddr("127.0.0.6") || gamma.Hosts[1].NoBoard {
			t.Errorf("gamma has %+v", gamma.Hosts)
		}
		if lam.Procs() != 0 || !lam.Foreign || lam.Implementation != LAM71 || lam.Representation != NativeX86 {
			t.Errorf("lam is %+v", lam)
		}
		if want := []netip.Prefix{netip.MustParsePrefix("198.51.100.7/32"), netip.MustParsePrefix("2001:db8::/64")}; !slices.Equal(lam.ChannelsFrom, want) {
			t.Errorf("lam connects from %v", lam.ChannelsFrom)
		}
	})
	t.Run("program", func(t *testing.T) {
		p := beta.Program
		want := map[string]string{"OMP_NUM_THREADS": "4", "DATA": "/srv/ann/data"}
		if !reflect.DeepEqual(p.Env, want) {
			t.Errorf("environment %v", p.Env)
		}
		if !reflect.DeepEqual(p.Command, []string{"./bin/prog", "--rounds", "1000"}) ||
			p.Path != filepath.Join(j.Dir, "bin/prog") || p.Dir != j.Dir || !p.PrefixOutput || p.Stdin != 0 || p.Bind != BindCore {
			t.Errorf("program %+v", p)
		}
	})
	t.Run("transports", func(t *testing.T) {
		if got := alpha.transportNames(); !reflect.DeepEqual(got, []string{"unix", "tcp", "quic", "x"}) {
			t.Errorf("alpha has %v", got)
		}
		tcp, _ := alpha.Transport("tcp")
		if !tcp.Builtin || tcp.SettingMap()["nodelay"] != true {
			t.Errorf("tcp is %+v", tcp)
		}
		quic, _ := alpha.Transport("quic")
		if !quic.Builtin || quic.SettingMap()["cert"] != "certs/alpha.pem" || quic.Dir != j.Dir {
			t.Errorf("quic is %+v", quic)
		}
		x, _ := alpha.Transport("x")
		settings := map[string]any{"servers": []string{"192.0.2.1", "192.0.2.2"}, "retries": 3.0}
		if x.Builtin || x.Path != filepath.Join(j.Dir, "bin/impi-transport-x") || !strings.HasPrefix(x.SHA256, "9f86d0") ||
			!reflect.DeepEqual(x.SettingMap(), settings) || x.Settings[0].Name != "servers" {
			t.Errorf("x is %+v", x)
		}
		if got := x.Environment(); !reflect.DeepEqual(got, []string{"FI_PROVIDER=tcp"}) {
			t.Errorf("x gets %q", got)
		}
		own, _ := beta.Transport("x")
		if own.SHA256 != "" || len(own.Settings) != 0 || own.Path != x.Path {
			t.Errorf("beta's x is %+v", own)
		}
	})
	t.Run("routes", func(t *testing.T) {
		if r := beta.RouteTo("alpha"); r.Direct || !reflect.DeepEqual(r.Prefer, []string{"tcp"}) {
			t.Errorf("beta to alpha: %+v", r)
		}
		if r := beta.RouteTo("lam"); r.Representation != External32 || len(r.Prefer) != 4 || !r.Direct {
			t.Errorf("beta to lam: %+v", r)
		}
		if r := alpha.RouteTo("beta"); r.Site != "*" || !reflect.DeepEqual(r.Prefer, []string{"unix", "x", "tcp"}) ||
			!reflect.DeepEqual(r.DataPlane, []string{"fd"}) {
			t.Errorf("alpha to beta: %+v", r)
		} else if c := r.Compress; c == nil || *c != (Compress{Zstd, 3, 8192}) {
			t.Errorf("alpha to beta is compressed by %v", c)
		}
		if p := alpha.RouteTo("beta").Precision; p == nil || p.Double != Float {
			t.Errorf("alpha to beta has precision %v", p)
		}
		if p := beta.RouteTo("alpha").Precision; p != nil {
			t.Errorf("beta to alpha has precision %v", p)
		}
		if c := beta.RouteTo("alpha").Compress; c != nil {
			t.Errorf("beta to alpha is compressed by %v", c)
		}
	})
	t.Run("merged attribute by attribute", func(t *testing.T) {
		if at := netip.MustParseAddrPort("127.0.0.1:0"); alpha.Metrics.Listen != at || beta.Metrics.Listen != at || alpha.Metrics.Pos.Line == 0 {
			t.Errorf("metrics: alpha %+v, beta %+v", alpha.Metrics, beta.Metrics)
		}
		if at := netip.MustParseAddrPort("127.0.0.1:0"); alpha.UI.Listen != at || beta.UI.Listen != at || alpha.UI.Pos.Line == 0 {
			t.Errorf("ui: alpha %+v, beta %+v", alpha.UI, beta.UI)
		}
		if beta.Protocol.DataLen != 1024 || beta.Protocol.HiWater != 128 || alpha.Protocol.DataLen != 262144 {
			t.Errorf("protocol: alpha %+v, beta %+v", alpha.Protocol, beta.Protocol)
		}
		if beta.Wait != (Wait{Spin: 20 * time.Microsecond}) || !alpha.Wait.Auto {
			t.Errorf("wait: alpha %+v, beta %+v", alpha.Wait, beta.Wait)
		}
		if alpha.Progress != time.Millisecond || beta.Progress != time.Millisecond {
			t.Errorf("progress: alpha %v, beta %v", alpha.Progress, beta.Progress)
		}
		if beta.Log.Level != "debug" || beta.Log.Trace != filepath.Join(j.Dir, "packets-%r.txt") {
			t.Errorf("log: %+v", beta.Log)
		}
	})
}

// full.hcl, with the alternatives in its comments, has every block and every attribute.
func TestFullFileDocumentsEverything(t *testing.T) {
	text, err := os.ReadFile("testdata/full.hcl")
	if err != nil {
		t.Fatal(err)
	}
	// A block that may stand in several places is explained in one of them.
	blockAt := func(path, name string) string {
		if path == "site." || path == "job." {
			path = ""
		}
		return path + name + "."
	}
	seen := map[string]bool{}
	var collect func(path string, body *hclsyntax.Body)
	collect = func(path string, body *hclsyntax.Body) {
		for name := range body.Attributes {
			seen[path+name] = true
		}
		for _, b := range body.Blocks {
			seen[blockAt(path, b.Type)] = true
			collect(blockAt(path, b.Type), b.Body)
		}
	}
	src := newSource([]byte(strings.ReplaceAll(string(text), "#:", "")))
	file, diags := hclsyntax.ParseConfig(src.text, "full.hcl", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	collect("", file.Body.(*hclsyntax.Body))

	checked := 0
	var check func(path string, spec *blockSpec)
	check = func(path string, spec *blockSpec) {
		checked++
		for _, a := range spec.attrs {
			if !seen[path+a.name] {
				t.Errorf("full.hcl has no %s%s", path, a.name)
			}
		}
		for _, b := range spec.blocks {
			if !seen[blockAt(path, b.name)] {
				t.Errorf("full.hcl has no block %s%s", path, b.name)
			}
			check(blockAt(path, b.name), b)
		}
	}
	check("", fileSpec)
	if checked < 20 {
		t.Errorf("only %d blocks were looked at", checked)
	}
}

func TestOneSiteFile(t *testing.T) {
	j := mustLoad(t, "testdata/one-site.hcl")
	s := mustSite(t, j, "alpha")
	if j.Complete || s.Procs() != 4 || s.Server.Embedded || s.Server.Address.Port() != 7800 {
		t.Errorf("job %+v", j)
	}
	if r := s.RouteTo("beta"); !r.RequireTLS || r.Prefer[0] != "quic" {
		t.Errorf("to beta: %+v", r)
	}
	if r := s.RouteTo("another"); r.RequireTLS || r.Prefer[0] != "unix" {
		t.Errorf("to another: %+v", r)
	}
	quic, _ := s.Transport("quic")
	if len(quic.Settings) != 3 || quic.Settings[2].Name != "ca" || quic.Settings[2].Pos.Line != 15 {
		t.Errorf("quic: %+v", quic.Settings)
	}
}

func TestSitesAreSortedAndDefaultsHold(t *testing.T) {
	j := mustLoad(t, "testdata/two-sites.hcl")
	if j.Sites[0].Name != "alpha" || j.Limits != (Limits{Start: time.Minute, Stop: 10 * time.Second, Resume: 30 * time.Second, Silence: 10 * time.Second}) {
		t.Fatalf("job %+v", j)
	}
	a, b := j.Sites[0], j.Sites[1]
	if !a.Server.Embedded || b.Server.Embedded || a.Server.Clients != 2 || a.Server.Timeout != time.Minute {
		t.Errorf("servers %+v and %+v", a.Server, b.Server)
	}
	if a.Auth != (Auth{Random: true}) || b.Auth != a.Auth {
		t.Errorf("auth %+v and %+v", a.Auth, b.Auth)
	}
	if r := a.RouteTo("beta"); !reflect.DeepEqual(r.Prefer, []string{"unix", "tcp"}) || !r.Direct || r.RequireTLS || r.DataPlane != nil {
		t.Errorf("route %+v", r)
	}
	want := Protocol{DataLen: 262144, AckMark: 32, HiWater: 128, Unexpected: 64 << 20, TagUB: 1<<31 - 1, XSize: -1, MaxLinear: -1, Collectives: "auto", Dialect: Published, IPv4: IPv4Compatible}
	if a.Protocol != want || !a.Wait.Auto || a.Log != (Log{Level: "info", Format: "text"}) {
		t.Errorf("site %+v", a)
	}
}

func TestMissingFile(t *testing.T) {
	job, diags := Load("testdata/no-such-file.hcl", testOptions())
	if job != nil || len(diags) != 1 {
		t.Fatal(job, diags)
	}
	want := "testdata/no-such-file.hcl: there is no such job file; correct the path; there is testdata/full.hcl, testdata/one-site.hcl, testdata/two-sites.hcl"
	if got := diags.Err(); got == nil || got.Error() != want {
		t.Errorf("got %v", got)
	}
}

// Only sites that run on this machine are checked against it.
func TestOtherMachinesAreNotChecked(t *testing.T) {
	opt := testOptions()
	opt.Local = func(a netip.Addr) bool { return a.IsLoopback() }
	text := `
job { server = "192.0.2.1:7800" }
plugin_dir = "nowhere"
site "far" {
  client = 1
  auth "key" { file = "nowhere.key" }
  host { address = "192.0.2.2"  procs = 1  port = 9 }
  program { command = ["./nowhere"]  dir = "nowhere" }
  transport "y" { plugin = "nowhere" }
}
site "near" {
  client = 0
  auth "none" {}
  host { address = "127.0.0.1"  procs = 1 }
  program { command = ["./bin/prog"] }
}
`
	dir, _ := filepath.Abs("testdata")
	j, diags := load(&faults{file: "job.hcl"}, []byte(text), dir, opt)
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	if local := j.LocalSites(opt.Local); len(local) != 1 || local[0].Name != "near" {
		t.Errorf("local: %+v", local)
	}
	if far := mustSite(t, j, "far"); far.Program.Path != "" || !far.Auth.Keyed {
		t.Errorf("far: %+v", far)
	}
	opt.Local = nil
	if _, diags = load(&faults{file: "job.hcl"}, []byte(text), dir, opt); len(diags) != 5 {
		t.Errorf("with all machines checked: %v", diags)
	}
}

// A transport that has settings without a default is there only with its block, after those that
// every job has.
func TestOptionalBuiltins(t *testing.T) {
	const file = oneProgram + `site "a" { client = 0  embedded_server {}  auth "none" {}` + hostA + `}`
	for text, want := range map[string][]string{
		file:                         {"unix", "tcp"},
		file + `transport "quic" {}`: {"unix", "tcp", "quic"},
		`transport "tcp" {}` + file:  {"unix", "tcp"},
		`transport "quic" { plugin = "bin/impi-transport-x" }` + file: {"unix", "tcp", "quic"},
	} {
		j, diags := loadText(t, text)
		if len(diags) > 0 {
			t.Fatalf("%s: %v", text, diags)
		}
		site := j.Sites[0]
		if got := site.transportNames(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: transports %v", text, got)
		}
		if quic, ok := site.Transport("quic"); ok && quic.Builtin == strings.Contains(text, "plugin") {
			t.Errorf("%s: built in is %t", text, quic.Builtin)
		}
	}
}

func TestSiteNames(t *testing.T) {
	got, err := SiteNames("testdata/full.hcl")
	if err != nil || !reflect.DeepEqual(got, []string{"alpha", "beta", "gamma"}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, name := range []string{"testdata/nothing.hcl", "testdata/job.key"} {
		if got, err := SiteNames(name); err == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A site that has certificates for a transport that a route prefers, by default too,
// closes the route unless the file says require_tls.
func TestCertificatesCloseRoutes(t *testing.T) {
	for name, c := range map[string]struct {
		transport, route string
		want             Route // of the fields that are compared
	}{
		"no certificates":      {``, `route "*" {}`, Route{}},
		"quic, no route":       {`transport "quic" { config { cert = "a.pem" } }`, ``, Route{Closed: true}},
		"quic":                 {`transport "quic" { config { ca = "a.pem" } }`, `route "*" { prefer = ["quic", "tcp"] }`, Route{Closed: true}},
		"tcp with tls":         {`transport "tcp" { config { tls = true } }`, `route "*" {}`, Route{Closed: true}},
		"tcp with tls = false": {`transport "tcp" { config { tls = false } }`, `route "*" {}`, Route{}},
		"another transport":    {`transport "quic" { config { cert = "a.pem" } }`, `route "*" { prefer = ["tcp"] }`, Route{}},
		"false":                {`transport "quic" { config { cert = "a.pem" } }`, `route "*" { require_tls = false }`, Route{AllowPlain: true}},
		"true":                 {`transport "quic" { config { cert = "a.pem" } }`, `route "*" { require_tls = true  prefer = ["quic"] }`, Route{RequireTLS: true}},
	} {
		text := "site \"alpha\" {\n  client = 0\n  embedded_server {}\n  host {\n address = \"127.0.0.2\"\n procs = 1\n }\n}\nprogram { command = [\"/bin/true\"] }\n" + c.transport + "\n" + c.route + "\n"
		job, found := load(&faults{file: "job.hcl"}, []byte(text), t.TempDir(), testOptions())
		if job == nil {
			t.Fatalf("%s: %v", name, found)
		}
		r := job.Sites[0].RouteTo("beta")
		if got := (Route{Closed: r.Closed, AllowPlain: r.AllowPlain, RequireTLS: r.RequireTLS}); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestTooManySites: too many sites are reported at once, without further checks, which would take
// long.
func TestTooManySites(t *testing.T) {
	text := "program { command = [\"/bin/true\"] }\n"
	for i := range MaxSites + 1 {
		text += fmt.Sprintf("site \"s%d\" { client = %d }\n", i, i%MaxSites)
	}
	job, found := load(&faults{file: "job.hcl"}, []byte(text), t.TempDir(), testOptions())
	if job != nil || len(found) != 1 || found[0].Pos.Line != MaxSites+2 || !strings.Contains(found[0].Problem, "at most 32 sites, and the file has 33") {
		t.Errorf("%v", found)
	}
}
