package reload

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/routes/routestest"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

const base = `
job {
  server = "127.0.0.1:7800"
  auth "key" { file = "job.key" }
}
site "alpha" {
  client = 0
  host { address = "127.0.0.2"  procs = 2 }
}
site "beta" {
  client = 1
  host { address = "127.0.0.3"  procs = 2 }
}
program { command = ["/bin/true"] }
`

// loaded is the text of a job file in a folder.
func loaded(t *testing.T, dir, text string) (*config.Job, config.Diagnostics) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "job.key"), []byte("4711\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "job.hcl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return config.Load(path, config.Options{Builtins: []config.Builtin{{Name: "unix", Machine: true}, {Name: "tcp", Channels: true}}})
}

// running is the Reloader of site alpha, which runs by a file.
func running(t *testing.T, text string) (*Reloader, func(text string) links.FileReload) {
	t.Helper()
	dir := t.TempDir()
	job, found := loaded(t, dir, text)
	if job == nil {
		t.Fatal(found)
	}
	site := job.Sites[0]
	rt := &routes.Table{Job: job, Site: &site, Transports: []*routes.Transport{
		routestest.Transport("unix", transports.ReachMachine), routestest.Transport("tcp", transports.ReachNetwork),
	}}
	now := ""
	r := New(Settings{Routes: rt, Log: hclog.New(&hclog.LoggerOptions{Level: hclog.Info, Output: &strings.Builder{}}), Source: &Source{
		Job: job, Site: job.Sites[0], Read: func(context.Context, string) (*config.Job, config.Diagnostics) { return loaded(t, dir, now) },
	}})
	return r, func(text string) links.FileReload {
		t.Helper()
		now = text
		a, err := r.Reload(t.Context(), false, "")
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
}

// TestWhatCanChange: each difference is either taken or said to need a restart, once.
func TestWhatCanChange(t *testing.T) {
	const all = `"*" {`
	for _, c := range []struct{ name, before, after, changes, restart string }{
		{"nothing", "", "", "", ""},
		{"lines that mean the same", "", "route " + all + " prefer = [\"unix\", \"tcp\"] }", "", ""},
		{"limits", "limits { resume = \"5s\"  silence = \"9s\" }", "limits { resume = \"6s\"  silence = \"8s\" }",
			"limits resume: 5s -> 6s: for new links, and dials to resume one", "limits silence: 9s -> 8s"},
		{"log", `log { level = "info" }`, `log { level = "trace"  format = "json" }`, "log level: info -> trace", `log format: text -> json`},
		{"order", "", "route " + all + ` prefer = ["tcp", "unix"] }`, `routes to alpha, beta, any other site: prefer: ["unix", "tcp"] -> ["tcp", "unix"]: for new links`, ""},
		{"one site", "", `route "beta" { prefer = ["tcp"] }`, `route to beta: prefer: ["unix", "tcp"] -> ["tcp"]: for new links`, ""},
		{"all but one", `route "*" { prefer = ["tcp"] }`, `route "beta" { prefer = ["tcp"] }`, `routes to alpha, any other site: prefer: ["tcp"] -> ["unix", "tcp"]: for new links`, ""},
		{"not direct any more", "", `route "beta" { direct = false }`, `route to beta: direct: true -> false: for new links`, ""},
		{"direct again", `route "beta" { direct = false }`, "", "", `route to beta: direct: false -> true: procs were told at the start that they have no direct links there`},
		{"direct again and the order", `route "beta" { direct = false }`, `route "beta" { prefer = ["tcp"] }`,
			`route to beta: prefer: ["unix", "tcp"] -> ["tcp"]: for new links`, `route to beta: direct: false -> true: procs were told at the start that they have no direct links there`},
		{"neither direct nor the order", `route "*" { prefer = ["tcp"] }`, `route "*" { direct = false }`,
			`routes to alpha, beta, any other site: prefer: ["tcp"] -> ["unix", "tcp"]; direct: true -> false: for new links`, ""},
		{"planes", "", `route "beta" { data_plane = ["fd"] }`, "", `route to beta: data_plane: none -> ["fd"]: no listener of unix was opened for these data planes`},
		{"any plane", `route "beta" { data_plane = ["fd"] }`, "", `route to beta: data_plane: ["fd"] -> none: for new links`, ""},
		{"cards", "", `route "beta" { resume = true }`, "", "route to beta: resume: false -> true"},
		{"secrecy", "", `route "beta" { require_tls = false }`, "", "route to beta: require_tls: not said -> false"},
		{"who", "", `site "gamma" {
  client = 2
  host { address = "127.0.0.4"  procs = 2 }
}`, `route to gamma`, `sites of the job: alpha (client 0), beta (client 1) -> alpha (client 0), beta (client 1), gamma (client 2)`},
		{"settings", "", `transport "tcp" { config { nodelay = false } }`, "", "transport tcp: nodelay: none -> false"},
		{"another transport", "", `transport "tcp" { plugin = "/bin/true" }`, "", `transport tcp: plugin: none -> /bin/true`},
		{"protocol", "", `protocol { datalen = 4096 }`, "", "protocol datalen: 262144 -> 4096"},
		{"ui", "", `ui { listen = "127.0.0.1:0" }`, "", "ui listen: none -> 127.0.0.1:0"},
		{"traces", "", "log { trace = \"/tmp/p-%r\" }\ntrace { calls = \"/tmp/c-%r\"\n otlp = \"http://a:1\" }", "", "log trace: none -> /tmp/p-%r\ntrace calls: none -> \"/tmp/c-%r\"\ntrace otlp: none -> \"http://a:1\""},
		{"report", "", `report { path = "job.html" }`, "", `report path: none -> "job.html"`},
		{"waiting", "", `wait { spin = "0" }`, "", "wait auto: true -> false"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, reload := running(t, base+c.before)
			a := reload(base + c.after)
			if strings.HasPrefix(c.changes, "route to gamma") {
				c.changes = "" // it has the same route as any other site
			}
			if got := strings.Join(a.Changes, "\n"); got != c.changes || len(a.Faults) > 0 || a.Problem != "" || !a.Applied {
				t.Errorf("changes:\n%s\nwant:\n%s\n%+v", got, c.changes, a)
			}
			if got := strings.Join(a.Restart, "\n"); got != c.restart {
				t.Errorf("restart:\n%s\nwant:\n%s", got, c.restart)
			}
			again := reload(base + c.after)
			if len(again.Changes) > 0 || !slices.Equal(again.Restart, a.Restart) {
				t.Errorf("again: %+v", again)
			}
			if back := reload(base + c.before); len(back.Changes) != len(a.Changes) || len(back.Restart) > 0 {
				t.Errorf("back: %+v", back)
			}
		})
	}
}

// TestWhatHoldsThen: who decides about links and limits goes by what has changed, and not by the
// rest.
func TestWhatHoldsThen(t *testing.T) {
	r, reload := running(t, base)
	reload(base + `
route "beta" {
  prefer = ["tcp"]
  resume = true
}
limits {
  stop    = "3s"
  silence = "5s"
}`)
	site, l := routes.CurrentSite(r.Routes), routes.CurrentLimits(r.Routes)
	if got := site.RouteTo("beta"); !slices.Equal(got.Prefer, []string{"tcp"}) || got.Resume {
		t.Errorf("to beta: %+v", got)
	}
	if got := site.RouteTo("gamma"); !slices.Equal(got.Prefer, []string{"unix", "tcp"}) {
		t.Errorf("to others: %+v", got)
	}
	if l.Stop != 3*time.Second || l.Silence != r.Source.Job.Limits.Silence {
		t.Errorf("%+v", l)
	}
	if r.Routes.Site.RouteTo("beta").Prefer[0] != "unix" {
		t.Error("what holds from the start on was changed, which others read without a lock")
	}
}

// TestWhatChangesNothing: neither a fault nor a check changes anything, and no key is shown.
func TestWhatChangesNothing(t *testing.T) {
	r, reload := running(t, base)
	if a := reload(base + "log { level = \"loud\" }\nlimits { stop = \"3s\" }"); a.Applied || len(a.Faults) != 1 || !strings.Contains(a.Faults[0], "job.hcl:") || !strings.Contains(a.Faults[0], "loud") {
		t.Errorf("a fault: %+v", a)
	}
	if a := reload(strings.Replace(base, `"alpha"`, `"omega"`, 1)); a.Applied || len(a.Faults) != 1 || !strings.Contains(a.Faults[0], `no site "alpha" any more`) {
		t.Errorf("the site is gone: %+v", a)
	}
	r.Source.Read = func(context.Context, string) (*config.Job, config.Diagnostics) {
		job, found := loaded(t, r.Source.Job.Dir, base+"limits { stop = \"3s\" }")
		job.Sites[0].Auth.Key = 4712
		job.Sites[0].Hosts[0].Address = netip.MustParseAddr("127.0.0.9")
		return job, found
	}
	a, err := r.Reload(t.Context(), true, "")
	if err != nil || a.Applied || len(a.Changes) != 1 || a.Digest == "" || routes.CurrentLimits(r.Routes).Stop == 3*time.Second {
		t.Errorf("a check: %+v, %v", a, err)
	}
	if got := strings.Join(a.Restart, "\n"); got != "auth: is another one\naddress of host 127.0.0.2: 127.0.0.2 -> 127.0.0.9" {
		t.Errorf("%s", got)
	}
	r.Source.Given = true
	if _, err := r.Reload(t.Context(), true, ""); err == nil || !strings.Contains(err.Error(), "an engine has started this node") {
		t.Errorf("no file: %v", err)
	}
}

// TestReloadIsLogged: what was taken is in the log whatever its level was and is, and nothing that
// the log would not show besides.
func TestReloadIsLogged(t *testing.T) {
	text := func(level, stop string) string {
		return base + "log { level = \"" + level + "\" }\nlimits { stop = \"" + stop + "\" }"
	}
	for _, c := range []struct{ before, after, at, restart string }{
		{"info", "error", "INFO", "WARN"}, {"error", "info", "INFO", "WARN"}, {"warn", "error", "WARN", "WARN"}, {"error", "error", "ERROR", "ERROR"},
		{"debug", "debug", "INFO", "WARN"},
	} {
		t.Run(c.before+" "+c.after, func(t *testing.T) {
			r, reload := running(t, text(c.before, "4s"))
			var said strings.Builder
			r.Log = hclog.New(&hclog.LoggerOptions{Level: hclog.LevelFromString(c.before), Output: &said, DisableTime: true})
			reload(text(c.after, "3s") + "\nui { listen = \"127.0.0.1:0\" }")
			want := ""
			if c.before != c.after {
				want = "[" + c.at + "]  reloaded: log level: " + c.before + " -> " + c.after + "\n"
			}
			want += "[" + c.at + "]  reloaded: limits stop: 4s -> 3s\n[" + c.restart + "]  the job file differs, which needs a restart: ui listen: none -> 127.0.0.1:0\n"
			if got := said.String(); strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") {
				t.Errorf("got\n%swant\n%s", got, want)
			}
			if got := r.Log.GetLevel(); got != hclog.LevelFromString(c.after) {
				t.Errorf("the level is %v", got)
			}
		})
	}
}

// TestLevelOfTheCommandLine counts more than that of the file.
func TestLevelOfTheCommandLine(t *testing.T) {
	r, reload := running(t, base)
	r.Source.Level = "warn"
	if a := reload(base + `log { level = "trace" }`); len(a.Changes) > 0 || len(a.Restart) != 1 || !strings.Contains(a.Restart[0], "-log-level warn") || r.Log.GetLevel() != hclog.Info {
		t.Errorf("%+v", a)
	}
}

// A plugin's variables are compared, and their values, which may be secrets, are not told.
func TestEnvDifferences(t *testing.T) {
	was := config.Transport{Env: map[string]string{"SAME": "1", "CHANGED": "old secret", "GONE": "third secret"}}
	now := config.Transport{Env: map[string]string{"SAME": "1", "CHANGED": "new secret", "NEW": "fourth secret"}}
	var said []string
	for _, d := range envDifferences("transport x", was, now) {
		said = append(said, d.String())
	}
	text := strings.Join(said, "\n")
	for _, name := range []string{"env CHANGED", "env GONE", "env NEW"} {
		if !strings.Contains(text, name) {
			t.Errorf("%s is missing in\n%s", name, text)
		}
	}
	if len(said) != 3 || strings.Contains(text, "secret") {
		t.Errorf("%q", said)
	}
}
