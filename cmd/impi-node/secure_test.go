package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// secureJob is a job of two sites in a new folder, whose certificates impi-node
// cert has made, and whose transport has the given name and settings.
func secureJob(t *testing.T, transport, more string) string {
	t.Helper()
	dir := t.TempDir()
	good(t, dir, "init", "-sites", "alpha,beta")
	var b strings.Builder
	fmt.Fprintf(&b, "job { embedded_server {} }\nprogram { command = [%q] }\n", os.Args[0])
	fmt.Fprintf(&b, "route \"*\" { prefer = [%q]  require_tls = true }\nlog { level = \"debug\" }\n", transport)
	for i, site := range []string{"alpha", "beta"} {
		fmt.Fprintf(&b, "site %q {\n  client = %d\n  host { address = \"127.0.0.%d\"  procs = 2 }\n", site, i, i+2)
		fmt.Fprintf(&b, "  transport %q {\n    config {\n%s      cert = \"certs/%[3]s.pem\"\n      key = \"certs/%[3]s.key\"\n      ca = \"certs/ca.pem\"\n    }\n  }\n}\n",
			transport, more, site)
	}
	path := filepath.Join(dir, "job.hcl")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A job whose procs talk over an encrypted transport only, with what impi-node
// cert makes.
func TestSecureJobs(t *testing.T) {
	for name, c := range map[string]struct{ transport, more string }{
		"quic": {"quic", ""}, "tcp": {"tcp", "      tls = true\n"},
	} {
		t.Run(name, func(t *testing.T) {
			job := secureJob(t, c.transport, c.more)
			status, out, err := impiNode(t, "meet", "-config", job)
			if status != 0 || strings.Count(out, "met\n") != 4 {
				t.Fatalf("status %d, %s\n%s", status, out, err)
			}
			if !strings.Contains(err, "transport="+c.transport+" data_plane=ring") {
				t.Errorf("no direct link over %s:\n%s", c.transport, err)
			}
			if strings.Contains(err, "data_plane=fd") {
				t.Errorf("a link that is not encrypted:\n%s", err)
			}
		})
	}
}
