package config

import (
	"fmt"
	"testing"
)

// TestCompress: a route without the block compresses nothing, and what the block leaves out has
// defaults.
func TestCompress(t *testing.T) {
	for name, c := range map[string]struct {
		route string
		want  string
	}{
		"no block": {`route "*" {}`, "none"},
		"no route": {``, "none"},
		"empty":    {`route "*" { compress {} }`, "zstd, level 1, from 4096 bytes"},
		"all":      {`route "*" { compress { algorithm = "zstd"  level = 19  min = 64 } }`, "zstd, level 19, from 64 bytes"},
		"another":  {`route "beta" { compress {} }`, "none"},
	} {
		text := "site \"alpha\" {\n  client = 0\n  embedded_server { clients = 2 }\n  auth \"none\" {}\n  host {\n address = \"127.0.0.2\"\n procs = 1\n }\n}\nprogram { command = [\"/bin/true\"] }\n" + c.route + "\n"
		j, diags := load(&faults{file: "job.hcl"}, []byte(text), "/", testOptions())
		if len(diags) > 0 {
			t.Errorf("%s: %v", name, diags)
			continue
		}
		if got := fmt.Sprint(j.Sites[0].RouteTo("gamma").Compress); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
