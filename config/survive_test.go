package config

import (
	"strings"
	"testing"
)

// TestRoutesThatSuspect: in a job that goes on without sites links resume by routes by which a
// plugin that is stopped would be taken for lost. If the file does not want that, it is warned.
func TestRoutesThatSuspect(t *testing.T) {
	const certificates = ` { config { cert = "site.pem"  key = "site.key"  ca = "job-ca.pem" } }`
	opt := testOptions()
	opt.Builtins = []Builtin{{Name: "shm", Machine: true}, {Name: "tcp"}, {Name: "quic", NeedsBlock: true, Datagrams: true}}
	for _, c := range []struct {
		survive, route string
		resumes        bool
		warned         int
	}{
		{"survive = true", `prefer = ["quic"]`, true, 0},
		{"survive = true", `prefer = ["shm", "quic", "tcp"]`, true, 0},
		{"survive = true", `prefer = ["quic"]  resume = true`, true, 0},
		{"survive = true", `prefer = ["quic"]  resume = false`, false, 1},
		{"survive = true", `prefer = ["tcp", "quic"]`, false, 0},
		{"", `prefer = ["quic"]`, false, 0},
	} {
		file := `job { embedded_server {}  auth "none" {}  ` + c.survive + " }\n" + oneProgram + `transport "quic"` + certificates + `
site "a" { client = 0  host { address = "127.0.0.2"  procs = 1 } }
site "b" { client = 1  host { address = "127.0.0.3"  procs = 1 } }
route "*" { ` + c.route + " }\n"
		j, diags := LoadText("testdata/job.hcl", []byte(file), opt)
		warned := 0
		for _, d := range diags {
			if d.Severity == Warning && strings.Contains(d.Problem, "taken for lost by a route of quic") && strings.Contains(d.Remedy, "remove resume = false") {
				warned++
			}
		}
		if j == nil || warned != c.warned {
			t.Fatalf("%s, %s: %d warnings, want %d: %v", c.survive, c.route, warned, c.warned, diags)
		}
		if r := j.Sites[0].RouteTo("b"); r.Resume != c.resumes {
			t.Errorf("%s, %s: links resume: %v", c.survive, c.route, r.Resume)
		}
	}
}

// TestDefaultRouteResumes: so they do where the file has no route, and only if it has none for all
// sites.
func TestDefaultRouteResumes(t *testing.T) {
	opt := testOptions()
	opt.Builtins = []Builtin{{Name: "quic", NeedsBlock: true, Datagrams: true}}
	for route, want := range map[string]bool{"": true, `route "*" { resume = false }`: false, `route "a" {}`: true} {
		file := `job { embedded_server {}  auth "none" {}  survive = true }` + "\n" + oneProgram + `
transport "quic" { config { cert = "site.pem"  key = "site.key"  ca = "job-ca.pem" } }
site "a" { client = 0  host { address = "127.0.0.2"  procs = 1 } }
site "b" { client = 1  host { address = "127.0.0.3"  procs = 1 } }
` + route + "\n"
		j, diags := LoadText("testdata/job.hcl", []byte(file), opt)
		if j == nil || j.Sites[0].RouteTo("b").Resume != want {
			t.Errorf("%q: want %v: %v", route, want, diags)
		}
	}
}
