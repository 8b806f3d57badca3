package main

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"aead.dev/minisign"

	"github.com/openimpi/impi/internal/loopback"
	"github.com/openimpi/impi/internal/pluginlock"
	"github.com/openimpi/impi/plugins/host"
)

// mirror has the plugin chaos in some versions, signed, at a web server, as its maker publishes it.
// The certificate is one that impi-node trusts. It returns the address and the public key.
func mirror(t *testing.T, versions ...string) (url, key string) {
	t.Helper()
	public, private, err := minisign.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	chaosPlugin(t, dir, "chaos")
	binary, err := os.ReadFile(filepath.Join(dir, "impi-transport-chaos"))
	if err != nil {
		t.Fatal(err)
	}
	srv := t.TempDir()
	for _, version := range versions {
		name := fmt.Sprintf("impi-transport-chaos_%s_%s_%s", version, runtime.GOOS, runtime.GOARCH)
		text := append(bytes.Clone(binary), "\n# "+version+"\n"...)
		r := minisign.NewReader(bytes.NewReader(text))
		_, _ = new(bytes.Buffer).ReadFrom(r)
		for file, content := range map[string][]byte{name: text, name + ".minisig": r.SignWithComments(private, "timestamp:1\tfile:"+name+"\thashed", "x")} {
			if err := os.WriteFile(filepath.Join(srv, file), content, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	if status, out, errs := impiNode(t, "", "plugins", "publish", "-key", public.String(), srv); status != 0 {
		t.Fatalf("publish: status %d\n%s%s", status, out, errs)
	}
	s := httptest.NewTLSServer(http.FileServer(http.Dir(srv)))
	t.Cleanup(s.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", ca)
	return s.URL, public.String()
}

// From publishing to a job: a plugin that its maker published at a web server is installed, a job
// of two sites runs with it, and not with another file in its place.
func TestPluginsFromTheirMakerToAJob(t *testing.T) {
	url, key := mirror(t, "1.2.0", "1.3.0")
	blocks := func(version string) string {
		return fmt.Sprintf("plugin \"chaos\" {\n  source = %q\n  version = %q\n  keys = [%q]\n}\n", url, version, key) +
			"transport \"chaos\" {\n  config { around = \"tcp\" }\n}\nroute \"*\" { prefer = [\"chaos\"] }\n"
	}
	job := file(t, twoSites+blocks("~> 1.2.0"))
	status, _, errs := impiNode(t, "", "validate", job)
	if status != statusUsage || !strings.Contains(errs, `plugin "chaos" is not in impi.lock.hcl`) || !strings.Contains(errs, "= impi-node plugins install -config "+job) {
		t.Errorf("before: status %d\n%s", status, errs)
	}
	status, out, errs := impiNode(t, "", "plugins", "install", "-config", job)
	if status != 0 || errs != "" || !strings.Contains(out, "chaos 1.2.0: installed, ") {
		t.Fatalf("install: status %d\n%s%s", status, out, errs)
	}
	for _, args := range [][]string{{"validate", job}, {"plugins", "verify", "-config", job}, {"-config", job}} {
		if status, out, errs := impiNode(t, "hello", args...); status != 0 {
			t.Errorf("%q: status %d\n%s%s", args, status, out, errs)
		}
	}
	text, err := os.ReadFile(job)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(job, bytes.Replace(text, []byte("~> 1.2.0"), []byte("~> 1.3"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _, errs := impiNode(t, "hello", "-config", job); status != statusUsage ||
		!strings.Contains(errs, `the job file wants "chaos" ~> 1.3, and impi.lock.hcl has 1.2.0`) || !strings.Contains(errs, "-upgrade") || !strings.Contains(errs, "^^^^") {
		t.Errorf("another constraint: status %d\n%s", status, errs)
	}
	if status, out, errs := impiNode(t, "", "plugins", "install", "-upgrade", "-config", job); status != 0 || !strings.Contains(out, "chaos 1.3.0 (was 1.2.0): installed") {
		t.Errorf("upgrade: status %d\n%s%s", status, out, errs)
	}
	binary := filepath.Join(filepath.Dir(job), "plugins", "chaos", "1.3.0", runtime.GOOS+"_"+runtime.GOARCH, "impi-transport-chaos")
	f, err := os.OpenFile(binary, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString("# changed\n")
		f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"validate", job}, {"-config", job}} {
		if status, _, errs := impiNode(t, "hello", args...); status != statusUsage ||
			!strings.Contains(errs, "it was changed after it was installed") && !strings.Contains(errs, "the lock file says") || !strings.Contains(errs, "impi-node plugins install -config "+job) {
			t.Errorf("%q with a changed file: status %d\n%s", args, status, errs)
		}
	}
	if status, out, errs := impiNode(t, "", "plugins", "install", "-config", job); status != 0 || !strings.Contains(out, "chaos 1.3.0: installed") {
		t.Errorf("repair: status %d\n%s%s", status, out, errs)
	}
	if status, out, errs := impiNode(t, "hello", "-config", job); status != 0 {
		t.Errorf("after the repair: status %d\n%s%s", status, out, errs)
	}
}

// A host whose lock file names another version than the head's ends the start of its site, on both,
// with both versions and what to do.
func TestHostsWithOtherPlugins(t *testing.T) {
	head, err := loopback.Free()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("KEY", "4711")
	var jobs []string
	for _, version := range []string{"1.2.0", "1.3.0"} {
		job := file(t, fmt.Sprintf(`
job {
  embedded_server {}
  auth "key" { env = "KEY" }
}
site "alpha" {
  client = 0
  head = %q
  hosts = "127.0.0.[2-3]"
  procs = 1
}
program { command = ["PROGRAM"] }
plugin "chaos" { source = "./mirror" }
transport "chaos" {
  config { around = "tcp" }
}
route "*" { prefer = ["chaos"] }
`, head))
		place := pluginlock.Path(filepath.Join(filepath.Dir(job), "plugins"), "chaos", version, pluginlock.Platform())
		if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
			t.Fatal(err)
		}
		chaosPlugin(t, filepath.Dir(place), "chaos")
		sum, err := host.Digest(place)
		if err != nil {
			t.Fatal(err)
		}
		lock := pluginlock.Lock{Plugins: map[string]pluginlock.Entry{"chaos": {Source: "./mirror", Version: version, SHA256: map[string]string{pluginlock.Platform(): sum}}}}
		if err := lock.Write(filepath.Join(filepath.Dir(job), pluginlock.Name)); err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, job)
	}
	run := func(second string) (statuses [2]int, said string) {
		first, _, errs := command(t, "hello", "-config", jobs[0], "-site", "alpha", "-host", "127.0.0.2")
		if err := first.Start(); err != nil {
			t.Fatal(err)
		}
		status, _, more := impiNode(t, "hello", "-config", second, "-site", "alpha", "-host", "127.0.0.3")
		_ = first.Wait() // the status says it
		return [2]int{first.ProcessState.ExitCode(), status}, errs.String() + more
	}
	if statuses, said := run(jobs[0]); statuses != [2]int{} {
		t.Errorf("the same on both: status %d\n%s", statuses, said)
	}
	statuses, said := run(jobs[1])
	want := "127.0.0.3 has chaos 1.3.0, 127.0.0.2 has 1.2.0; copy impi.lock.hcl of 127.0.0.2 to 127.0.0.3, and run impi-node plugins install there"
	if statuses != [2]int{statusUsage, statusUsage} || strings.Count(said, want) < 2 {
		t.Errorf("status %d\n%s", statuses, said)
	}
}
