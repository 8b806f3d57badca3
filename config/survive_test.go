package config

import (
	"strings"
	"testing"
)

// TestRoutesThatSuspect: a job that goes on without sites is warned of routes by which a plugin that is stopped is taken
// for lost, unless links resume there, or something else comes first.
func TestRoutesThatSuspect(t *testing.T) {
	const certificates = ` { config { cert = "site.pem"  key = "site.key"  ca = "job-ca.pem" } }`
	opt := testOptions()
	opt.Builtins = []Builtin{{Name: "shm", Machine: true}, {Name: "tcp"}, {Name: "quic", NeedsBlock: true, Datagrams: true}}
	for _, c := range []struct {
		survive, route string
		warned         int
	}{
		{"survive = true", `prefer = ["quic"]`, 1},
		{"survive = true", `prefer = ["shm", "quic", "tcp"]`, 1},
		{"survive = true", `prefer = ["quic"]  resume = true`, 0},
		{"survive = true", `prefer = ["tcp", "quic"]`, 0},
		{"", `prefer = ["quic"]`, 0},
	} {
		file := `job { embedded_server {}  auth "none" {}  ` + c.survive + " }\n" + oneProgram + `transport "quic"` + certificates + `
site "a" { client = 0  host { address = "127.0.0.2"  procs = 1 } }
site "b" { client = 1  host { address = "127.0.0.3"  procs = 1 } }
route "*" { ` + c.route + " }\n"
		j, diags := LoadText("testdata/job.hcl", []byte(file), opt)
		warned := 0
		for _, d := range diags {
			if d.Severity == Warning && strings.Contains(d.Problem, "taken for lost by a route of quic") && strings.Contains(d.Remedy, "add resume = true") {
				warned++
			}
		}
		if j == nil || warned != c.warned {
			t.Errorf("%s, %s: %d warnings, want %d: %v", c.survive, c.route, warned, c.warned, diags)
		}
	}
}
