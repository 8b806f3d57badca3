package config

import (
	"net/netip"
	"strings"
	"testing"
)

// spareFile is a file with a spare site; more is in its block, and rest at the top of the file.
func spareFile(more, rest string) string {
	return `
site "alpha" {
  client = 0
  host {
    address = "127.0.0.2"
    procs   = 2
  }
}
site "delta" {
  spare = true
` + more + `
  host {
    address = "127.0.0.3"
    procs   = 2
  }
}
program { command = ["./bin/prog"] }
` + rest
}

const (
	spareJob   = "job {\n  embedded_server {}\n  auth \"none\" {}\n}\n"
	spareAllow = `spawn { allow = ["./bin/*"] }` + "\n"
)

func TestSpareSite(t *testing.T) {
	job, diags := loadText(t, spareFile("", spareJob+spareAllow))
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	if len(job.Sites) != 1 || len(job.Spares) != 1 || len(job.All()) != 2 || !job.Complete {
		t.Fatalf("%d sites, %d spare ones, complete %t", len(job.Sites), len(job.Spares), job.Complete)
	}
	alpha, delta := mustSite(t, job, "alpha"), mustSite(t, job, "delta")
	if !delta.Spare || delta.Client != -1 || delta.Procs() != 2 || !delta.Server.Ours || delta.Server.Embedded || delta.Server.Address != alpha.Server.Address {
		t.Errorf("delta: %+v", delta)
	}
	if alpha.Server.Clients != 1 || !alpha.Server.Embedded || alpha.Client != 0 || alpha.Spare {
		t.Errorf("alpha: %+v", alpha.Server)
	}
	if all := job.LocalSites(func(netip.Addr) bool { return true }); len(all) != 2 || all[1].Name != "delta" {
		t.Errorf("local: %d", len(all))
	}
}

// TestSpareSiteAlone: the file may have nothing but the spare site, and no program.
func TestSpareSiteAlone(t *testing.T) {
	job, diags := loadText(t, `
job {
  server = "127.0.0.1:7800"
  auth "none" {}
}
site "delta" {
  spare = true
  host {
    address = "127.0.0.3"
    procs   = 2
  }
}
`+spareAllow)
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	if len(job.Sites) != 0 || len(job.Spares) != 1 || job.Complete || job.Spares[0].Program.Dir == "" {
		t.Errorf("%+v", job)
	}
}

func TestSpareFaults(t *testing.T) {
	for name, c := range map[string]struct{ text, problem string }{
		"client":       {spareFile("  client = 1", spareJob+spareAllow), `site "delta" is spare: is no client of the job from its start`},
		"foreign":      {spareFile("  foreign = true", spareJob+spareAllow), "another MPI cannot wait for spawned procs"},
		"native":       {spareFile("  native {}", spareJob+spareAllow), "cannot add procs"},
		"launch":       {spareFile("  launch \"ssh\" {}", spareJob+spareAllow), "its machines are not started with the job"},
		"server":       {spareFile("  embedded_server {}", "job {\n auth \"none\" {}\n}\n"+spareAllow), "the job begins without it"},
		"no allow":     {spareFile("", spareJob), "lets no other site spawn"},
		"no client":    {strings.Replace(spareFile("", spareJob+spareAllow), "  client = 0\n", "", 1), `site "alpha" has no client`},
		"all spare":    {strings.Replace(spareFile("", spareJob+spareAllow), "  client = 0\n", "  spare = true\n", 1), ""},
		"foreign site": {spareFile("", spareJob+spareAllow+"site \"lam\" {\n  client = 1\n  foreign = true\n}\n"), `site "lam" runs another MPI`},
		"their server": {spareFile("", "job {\n  server = \"127.0.0.1:7800\"\n  server_foreign = true\n  auth \"none\" {}\n}\n"+spareAllow), "which knows no spare sites"},
		"too many":     {spareFile("", strings.Replace(spareJob, "embedded_server {}", "embedded_server { clients = 2 }", 1)+spareAllow), ""},
	} {
		_, diags := loadText(t, c.text)
		found := false
		for _, d := range diags {
			found = found || c.problem != "" && strings.Contains(d.Problem, c.problem) && d.Remedy != "" && d.Pos.Line > 0
		}
		if c.problem != "" && !found {
			t.Errorf("%s: %v", name, diags)
		}
		if name == "all spare" && !diags.HasErrors() {
			t.Errorf("%s: no fault", name)
		}
		if name == "too many" && diags.HasErrors() { // the other client is elsewhere
			t.Errorf("%s: %v", name, diags)
		}
	}
}
