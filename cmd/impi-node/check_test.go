package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openimpi/impi/config"
)

// chaosPlugin writes the plugin that disturbs links into a folder.
func chaosPlugin(t *testing.T, dir, name string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\n" + envChaos + "=" + name + " exec '" + self + "'\n"
	if err := os.WriteFile(filepath.Join(dir, "impi-transport-"+name), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
}

// What a node would refuse at its start, validate refuses: with the line and what to do,
// in one fault.
func TestValidateFindsWhatCannotStart(t *testing.T) {
	plugins, elsewhere := t.TempDir(), t.TempDir()
	chaosPlugin(t, plugins, "chaos")
	chaosPlugin(t, plugins, "chaos-chaos")
	chaosPlugin(t, elsewhere, "chaos")
	if err := os.Symlink(filepath.Join(elsewhere, "impi-transport-chaos"), filepath.Join(plugins, "impi-transport-out")); err != nil {
		t.Fatal(err)
	}
	certs := t.TempDir()
	others := t.TempDir()
	good(t, others, "init", "-sites", "alpha,beta")
	good(t, certs, "init", "-sites", "alpha,beta") // goes there
	quic := func(site string) string {
		return `transport "quic" { config { cert = "` + certs + "/certs/" + site + `.pem"  key = "` + certs + "/certs/" + site + `.key"  ca = "` + certs + `/certs/ca.pem" } }`
	}
	begin := strings.Replace(strings.TrimPrefix(twoSites, "\n"), "job { ", "job {  auth \"none\" {}  ", 1)
	for name, c := range map[string]struct {
		text, more string // the job file, from line 11 on
		want       string
		remedy     string
	}{
		"shm with require_tls": {begin, `route "*" { prefer = ["shm"]  require_tls = true }`,
			`job.hcl:11:1: error: route "*" has require_tls, but no transport in its prefer encrypts: ["shm"]`, `give both sites transport "quic"`},
		"all transports with require_tls": {begin, `route "*" { require_tls = true }`,
			`job.hcl:11:1: error: route "*" has require_tls`, "take require_tls out"},
		"a symbolic link that leaves its folder": {begin, `transport "out" { plugin = "` + plugins + `/impi-transport-out" }` + "\n" + `route "*" { prefer = ["out", "tcp"] }`,
			`job.hcl:11:1: error: plugin ` + plugins + `/impi-transport-out: cannot be opened inside`, "copy the file into it"},
		"chaos around itself": {begin, "plugin_dir = \"" + plugins + "\"\ntransport \"chaos\" {\n  plugin = \"impi-transport-chaos\"\n  config { around = \"chaos\" }\n}\n" + `route "*" { prefer = ["chaos"] }`,
			`job.hcl:14:21: error: transport "chaos": around: there is no transport "chaos" in this plugin`, "tcp"},
		"chaos around itself by its name": {begin, "plugin_dir = \"" + plugins + "\"\ntransport \"chaos-chaos\" {\n  plugin = \"impi-transport-chaos-chaos\"\n}\n" + `route "*" { prefer = ["chaos-chaos"] }`,
			`job.hcl:12:1: error: transport "chaos-chaos": around: there is no transport "chaos" in this plugin`, "choose one of tcp"},
		"a setting that a plugin has not": {begin, "plugin_dir = \"" + plugins + "\"\ntransport \"chaos\" {\n  plugin = \"impi-transport-chaos\"\n  config { arround = \"tcp\" }\n}\n" + `route "*" { prefer = ["chaos"] }`,
			`job.hcl:14:22: error: transport "chaos": arround: is not a setting of this transport`, "around"},
		"a setting of another type": {begin, "plugin_dir = \"" + plugins + "\"\ntransport \"chaos\" {\n  plugin = \"impi-transport-chaos\"\n  config { piece = \"x\" }\n}\n" + `route "*" { prefer = ["chaos"] }`,
			`job.hcl:14:20: error: transport "chaos": piece: has a value of the wrong type: x`, "give it a number: bytes of the pieces"},
		"a negative number": {begin, "plugin_dir = \"" + plugins + "\"\ntransport \"chaos\" {\n  plugin = \"impi-transport-chaos\"\n  config { piece = -5 }\n}\n" + `route "*" { prefer = ["chaos"] }`,
			`job.hcl:14:20: error: transport "chaos": piece: -5 is no whole number from 1 to`, "write one that is"},
		"a plugin of another name": {begin, "plugin_dir = \"" + plugins + "\"\ntransport \"storm\" {\n  plugin = \"impi-transport-chaos\"\n}\n" + `route "*" { prefer = ["storm"] }`,
			`job.hcl:12:1: error: plugin ` + plugins + `/impi-transport-chaos: `, "storm"},
		"another checksum": {begin, "plugin_dir = \"" + plugins + "\"\ntransport \"chaos\" {\n  plugin = \"impi-transport-chaos\"\n  sha256 = \"" + strings.Repeat("00", 32) + "\"\n}\n" + `route "*" { prefer = ["chaos"] }`,
			`job.hcl:12:1: error: plugin ` + plugins + `/impi-transport-chaos: the file has sha256`, "checksum"},
		"a data plane that nobody has": {begin, `route "*" { prefer = ["shm"]  data_plane = ["fd"] }`,
			`job.hcl:11:1: error: route "*" pins data_plane = ["fd"]`, "change data_plane or prefer"},
		"certificates at one end": {strings.Replace(begin, `site "beta" {`, `site "beta" { `+"\n"+`route "*" { prefer = ["tcp"] }`, 1),
			quic("alpha") + "\n" + `route "*" { prefer = ["quic", "tcp"] }`,
			`and its routes and those of site "beta" have no transport in common that encrypts: ["quic" "tcp"] and ["tcp"]`, "or write require_tls = false"},
		"another MPI": {strings.Replace(begin, "procs = 1 }\n}\nprogram", "procs = 1 }\n}\nsite \"lam\" {\n  client = 2\n  foreign = true\n}\nprogram", 1),
			quic("alpha") + "\n" + `route "*" { prefer = ["quic", "tcp"] }`,
			`has certificates and does not say require_tls = false, and site "lam" knows only IMPI's plain channels`, "write require_tls = false, and lead"},
		"certificates of two CAs": {strings.NewReplacer(`site "alpha" {`, "site \"alpha\" {\n"+quic("alpha"), `site "beta" {`, "site \"beta\" {\n"+strings.ReplaceAll(quic("beta"), certs, others)).Replace(begin),
			`route "*" { prefer = ["quic"] }`,
			`: error: transport "quic": ca: site "alpha" does not accept site "beta": the certificate of "beta" was not signed by the CA in ` + certs + "/certs/ca.pem", "with one CA: impi-node cert init"},
		"fewer ports than listeners": {begin, "transport \"tcp\" {\n  config { port_range = \"48391-48391\" }\n}\n" + `route "*" { prefer = ["tcp"] }`,
			`job.hcl:12:25: error: transport "tcp": port_range: a node opens 2 ports at one address: one for channels, and for each host one for every list of data planes that routes pin; the range has only 1`, "widen it"},
		"fewer ports than lists of data planes": {begin, "transport \"tcp\" {\n  config { port_range = \"48391-48392\" }\n}\n" + `route "beta" { prefer = ["tcp"]  data_plane = ["ring"] }` + "\n" + `route "*" { prefer = ["tcp"] }`,
			`a node opens 3 ports at one address`, "widen it"},
		"fewer ports than listeners of all sorts": {begin, "ports = \"48391-48392\"\nui { listen = \"127.0.0.2:0\" }\n" + `route "*" { prefer = ["tcp"] }`,
			`job.hcl:11:9: error: at 127.0.0.2 at least 3 TCP ports are needed besides those of the server and of heads, and the range leaves 48391-48392`, `widen it, as to "48391-48490"`},
		"a host elsewhere": {strings.Replace(begin, `host { address = "127.0.0.2"  procs = 1 }`, "host { address = \"127.0.0.2\"  procs = 1 }\n  host { address = \"192.0.2.9\"  procs = 1 }", 1), "",
			`job.hcl:4:3: error: the hosts of site "alpha" are on several machines, and the others cannot reach 127.0.0.2`, "on the network of the others"},
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t, c.text+c.more+"\n")
			status, _, err := impiNode(t, "", "validate", path)
			if status != statusUsage || !strings.Contains(err, c.want) || !strings.Contains(err, c.remedy) {
				t.Errorf("status %d, want %q and %q:\n%s", status, c.want, c.remedy, err)
			}
			if n := strings.Count(err, " error: "); n != 1 {
				t.Errorf("%d faults:\n%s", n, err)
			}
			if status, out, err := impiNode(t, "hello", "-config", path); status == 0 {
				t.Errorf("the job ran:\n%s%s", out, err)
			}
		})
	}
}

// A file that can start has no faults, plugins and all.
func TestValidateStartsPlugins(t *testing.T) {
	plugins := t.TempDir()
	chaosPlugin(t, plugins, "chaos")
	path := file(t, twoSites+"plugin_dir = \""+plugins+"\"\ntransport \"chaos\" {\n  plugin = \"impi-transport-chaos\"\n  config { around = \"tcp\" }\n}\nroute \"*\" { prefer = [\"chaos\"] }\n")
	if status, out, err := impiNode(t, "", "validate", path); status != 0 || err != "" {
		t.Errorf("status %d\n%s%s", status, out, err)
	}
	if status, out, err := impiNode(t, "hello", "-config", path); status != 0 {
		t.Errorf("status %d\n%s%s", status, out, err)
	}
}

// TestSummary: what validate counts is in plain words, also what it cannot count.
func TestSummary(t *testing.T) {
	here, there, unplaced := config.Site{Hosts: []config.Host{{Procs: 1}}}, config.Site{Hosts: []config.Host{{Auto: true}}}, config.Site{Launch: &config.Launch{Engine: config.LaunchSlurm}}
	for want, sites := range map[string][]config.Site{
		"1 site, 1 proc, no faults":   {here},
		"2 sites, 2 procs, no faults": {here, here},
		`2 sites, 1 proc and those by procs = "auto" of other machines, no faults`:                    {here, there},
		`2 sites, procs by procs = "auto" of other machines and what launch "slurm" finds, no faults`: {there, unplaced},
	} {
		if got := summary("job.hcl", &config.Job{Sites: sites}); got != "job.hcl: "+want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// validate asks a plugin that no route names, too, and shows the setting with a caret.
func TestValidateAsksPluginsOfNoRoute(t *testing.T) {
	plugins := t.TempDir()
	chaosPlugin(t, plugins, "chaos")
	path := file(t, twoSites+"plugin_dir = \""+plugins+"\"\ntransport \"chaos\" {\n  plugin = \"impi-transport-chaos\"\n  config { arround = \"tcp\" }\n}\nroute \"*\" { prefer = [\"tcp\"] }\n")
	status, _, err := impiNode(t, "", "validate", path)
	if status != statusUsage || !strings.Contains(err, "arround: is not a setting of this transport") || !strings.Contains(err, "^^^") {
		t.Errorf("status %d\n%s", status, err)
	}
}

// A plugin gets the variables of its block, from validate and from the node of a job.
func TestPluginEnvironment(t *testing.T) {
	plugins := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\n[ \"$FI_PROVIDER\" = 'tcp only' ] || { echo \"no provider\" >&2; exit 1; }\n" + envChaos + "=chaos exec '" + self + "'\n"
	if err := os.WriteFile(filepath.Join(plugins, "impi-transport-chaos"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	with := func(env string) string {
		return file(t, twoSites+"plugin_dir = \""+plugins+"\"\ntransport \"chaos\" {\n  plugin = \"impi-transport-chaos\"\n  "+env+"\n}\nroute \"*\" { prefer = [\"chaos\"] }\n")
	}
	path := with(`env = { FI_PROVIDER = "tcp only" }`)
	if status, out, err := impiNode(t, "", "validate", path); status != 0 || err != "" {
		t.Errorf("validate: status %d\n%s%s", status, out, err)
	}
	if status, out, err := impiNode(t, "hello", "-config", path); status != 0 {
		t.Errorf("status %d\n%s%s", status, out, err)
	}
	if status, _, err := impiNode(t, "", "validate", with("")); status == 0 || !strings.Contains(err, "chaos") {
		t.Errorf("without env: status %d\n%s", status, err)
	}
}
