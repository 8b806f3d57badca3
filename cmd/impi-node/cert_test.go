package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/openimpi/impi/plugins/sdk/transports/identity"
)

// certs runs impi-node cert in a folder, which relative paths start from.
func certs(t *testing.T, dir string, args ...string) (status int, out, err string) {
	t.Helper()
	t.Chdir(dir)
	var files [2]*os.File
	for i := range files {
		f, e := os.CreateTemp(t.TempDir(), "out")
		if e != nil {
			t.Fatal(e)
		}
		defer f.Close()
		files[i] = f
	}
	status = run(append([]string{"cert"}, args...), streams{nil, files[0], files[1]})
	var texts [2]string
	for i, f := range files {
		b, e := os.ReadFile(f.Name())
		if e != nil {
			t.Fatal(e)
		}
		texts[i] = string(b)
	}
	return status, texts[0], texts[1]
}

// good makes certificates without a failure.
func good(t *testing.T, dir string, args ...string) string {
	t.Helper()
	status, out, err := certs(t, dir, args...)
	if status != 0 || err != "" {
		t.Fatalf("%q: status %d, %s", args, status, err)
	}
	return out
}

// loadCert takes the files of a site as a transport would.
func loadCert(dir, site string) error {
	_, err := identity.Load(map[string]any{
		"cert": filepath.Join(dir, "certs", site+".pem"), "key": filepath.Join(dir, "certs", site+".key"),
		"ca": filepath.Join(dir, "certs", "ca.pem"),
	})
	return err
}

func TestCertInit(t *testing.T) {
	dir := t.TempDir()
	out := good(t, dir, "init", "-sites", "alpha,beta")
	for _, want := range []string{`cert = "certs/alpha.pem"`, `key  = "certs/beta.key"`, `ca   = "certs/ca.pem"`, "site alpha, valid until"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in:\n%s", want, out)
		}
	}
	for _, site := range []string{"alpha", "beta"} {
		if err := loadCert(dir, site); err != nil {
			t.Errorf("%s: %v", site, err)
		}
	}
	for name, mode := range map[string]os.FileMode{"ca.key": 0o600, "alpha.key": 0o600, "ca.pem": 0o644, ".": 0o700} {
		info, err := os.Stat(filepath.Join(dir, "certs", name))
		if err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "certs", "*.new")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestCertNeverReplaces(t *testing.T) {
	dir := t.TempDir()
	good(t, dir, "init", "-sites", "alpha,beta")
	before, err := os.ReadFile(filepath.Join(dir, "certs", "alpha.pem"))
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-sites", "gamma"}, {"init", "-sites", "alpha"}, {"issue", "alpha"}, {"issue", "gamma", "alpha"}} {
		if status, _, err := certs(t, dir, args...); status == 0 || !strings.Contains(err, "exists and is not replaced") {
			t.Errorf("%q: status %d, %s", args, status, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "certs", "gamma.pem")); err == nil {
		t.Error("a command that failed has made files")
	}
	key := filepath.Join(dir, "certs", "alpha.key")
	if err := os.Chmod(key, 0o640); err != nil {
		t.Fatal(err)
	}
	const group = 4242
	if os.Geteuid() == 0 {
		if err := os.Chown(key, 0, group); err != nil {
			t.Fatal(err)
		}
	}
	good(t, dir, "issue", "-renew", "alpha")
	if st, err := os.Stat(key); err != nil || st.Mode().Perm() != 0o640 || os.Geteuid() == 0 && st.Sys().(*syscall.Stat_t).Gid != group {
		t.Errorf("the new key is for others than the old one: %+v, %v", st, err)
	}
	if err := os.Chmod(key, 0o600); err != nil { // this process may be root, for whom it is else no secret
		t.Fatal(err)
	}
	after, err := os.ReadFile(filepath.Join(dir, "certs", "alpha.pem"))
	if err != nil || bytes.Equal(before, after) {
		t.Errorf("-renew has not replaced the certificate: %v", err)
	}
	good(t, dir, "issue", "gamma")
	for _, site := range []string{"alpha", "beta", "gamma"} { // all of one CA
		if err := loadCert(dir, site); err != nil {
			t.Errorf("%s: %v", site, err)
		}
	}
}

func TestCertOfAJobFile(t *testing.T) {
	dir := t.TempDir()
	job := filepath.Join(dir, "job.hcl")
	// It names files that are yet to be made, on one line.
	text := `job { embedded_server {} }
site "alpha" { client = 0  transport "quic" { config { cert = "certs/alpha.pem"  key = "k" } } }
site "lam" { client = 1  foreign = true }
site "beta" { client = 2 }
`
	if err := os.WriteFile(job, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out := good(t, dir, "init", "-config", "job.hcl")
	if !strings.Contains(out, "certs/beta.pem") || strings.Contains(out, "lam") {
		t.Errorf("it says:\n%s", out)
	}
}

func TestCertShow(t *testing.T) {
	dir := t.TempDir()
	good(t, dir, "init", "-sites", "alpha", "-days", "2")
	out := good(t, dir, "show", "certs/alpha.pem", "certs/ca.pem")
	if !strings.Contains(out, "site alpha, signed by impi job CA") || !strings.Contains(out, "CA impi job CA") {
		t.Errorf("it says:\n%s", out)
	}
}

func TestCertUsage(t *testing.T) {
	dir := t.TempDir()
	for text, args := range map[string][]string{
		"there is no command":            {"make"},
		"say which sites":                {"init"},
		"either":                         {"init", "-sites", "a", "-config", "b"},
		"-sites alpha":                   {"init", "alpha"},
		"letters, digits":                {"init", "-sites", "al pha"},
		"those of the CA":                {"init", "-sites", "ca"},
		"named twice":                    {"init", "-sites", "a,a"},
		"-days 0":                        {"init", "-sites", "a", "-days", "0"},
		"impi-node cert init makes a CA": {"issue", "alpha"},
		"name the sites":                 {"issue"},
		"name the files":                 {"show"},
		"not defined":                    {"show", "-days", "3"},
	} {
		if status, _, err := certs(t, dir, args...); status != statusUsage || !strings.Contains(err, text) {
			t.Errorf("%q: status %d, %s", args, status, err)
		}
	}
	for _, args := range [][]string{nil, {"help"}, {"-h"}, {"init", "-h"}} {
		if status, out, _ := certs(t, dir, args...); status != 0 || !strings.Contains(out, "impi-node cert init -sites alpha,beta") {
			t.Errorf("%q: status %d", args, status)
		}
	}
}

// Certificates are judged with the file, at the line that names them.
func TestValidateJudgesCertificates(t *testing.T) {
	dir := t.TempDir()
	good(t, dir, "init", "-sites", "alpha")
	write := func(cert string) string {
		path := filepath.Join(dir, "job.hcl")
		text := `site "alpha" { client = 0  embedded_server { clients = 1 }  auth "none" {} }
host { address = "127.0.0.1"  procs = 1 }
program { command = ["true"] }
transport "quic" {
  config {
    cert = "certs/` + cert + `.pem"
    key  = "certs/alpha.key"
    ca   = "certs/ca.pem"
  }
}
`
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Chdir("/") // paths start from the file's folder
	if status, _, err := impiNode(t, "", "validate", write("alpha")); status != 0 {
		t.Errorf("status %d: %s", status, err)
	}
	if status, _, err := impiNode(t, "", "validate", write("beta")); status != statusUsage || !strings.Contains(err, "job.hcl:6:") || !strings.Contains(err, "there is no file") {
		t.Errorf("status %d: %s", status, err)
	}
}
