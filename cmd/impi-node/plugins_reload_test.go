package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestPluginsReload(t *testing.T) {
	r := startJob(t, 2, "-config", file(t, twoSites))
	reload := func(args ...string) (int, string, string) {
		return impiNode(t, "", append([]string{"plugins", "reload", "-run-dir", r.base}, args...)...)
	}
	status, out, errs := reload("-json", "-job", "job", "tcp")
	var got struct{ Reloads []reloaded }
	if err := json.Unmarshal([]byte(out), &got); err != nil || status != statusOK || len(got.Reloads) != 2 {
		t.Fatalf("status %d, %v\n%s%s", status, err, out, errs)
	}
	for _, x := range got.Reloads {
		if x.Error != "" || x.Before.PID == x.After.PID || x.After.PID == 0 || x.Transport != "tcp" {
			t.Errorf("%+v %+v", x, x.PluginReload)
		}
	}
	status, out, errs = reload("tcp")
	if status != statusOK || strings.Count(out, "replaced by") != 2 {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	for args, want := range map[string]string{
		"pigeon":           `no running job here has the transport "pigeon"`,
		"-job another tcp": `no running job here is called "another"`,
	} {
		if status, out, errs := reload(strings.Fields(args)...); status != statusBad || !strings.Contains(errs, want) || out != "" {
			t.Errorf("%q: status %d\n%s%s", args, status, out, errs)
		}
	}
	if status, _, errs := reload(); status != statusUsage || !strings.Contains(errs, "the name of one transport") {
		t.Errorf("status %d\n%s", status, errs)
	}
}

// TestPluginsReloadAsksWhichJob: where several jobs run, none is touched that was
// not named.
func TestPluginsReloadAsksWhichJob(t *testing.T) {
	one := startJob(t, 2, "-config", file(t, twoSites))
	two := startProgramAt(t, one.base, "exchange", 2, "-config", file(t, twoSites))
	reload := func(args ...string) (int, string, string) {
		return impiNode(t, "", append([]string{"plugins", "reload", "-run-dir", one.base}, args...)...)
	}
	var ids []string
	for _, r := range []*running{one, two} {
		_, j := r.report(t, "-pid", strconv.Itoa(r.cmd.Process.Pid))
		ids = append(ids, j.ID)
	}
	for _, args := range [][]string{{"tcp"}, {"-job", "job", "tcp"}} { // both files are called so
		status, out, errs := reload(args...)
		if status != statusUsage || out != "" || !strings.Contains(errs, "2 jobs here") || !strings.Contains(errs, ids[0]) || !strings.Contains(errs, ids[1]) {
			t.Errorf("%q: status %d\n%s%s", args, status, out, errs)
		}
	}
	if status, out, errs := reload("-job", ids[0], "tcp"); status != statusOK || strings.Count(out, "replaced by") != 2 {
		t.Errorf("one job: status %d\n%s%s", status, out, errs)
	}
	if status, out, errs := reload("-all", "tcp"); status != statusOK || strings.Count(out, "replaced by") != 4 {
		t.Errorf("all jobs: status %d\n%s%s", status, out, errs)
	}
	if status, _, errs := reload("-all", "-job", "job", "tcp"); status != statusUsage || !strings.Contains(errs, "either -job or -all") {
		t.Errorf("both: status %d\n%s", status, errs)
	}
}

// TestPluginsReloadOfAnotherChecksum: a new binary whose checksum the job file pins is refused
// until the nodes have read the file again, and then runs.
func TestPluginsReloadOfAnotherChecksum(t *testing.T) {
	plugins := t.TempDir()
	binary := filepath.Join(plugins, "impi-transport-chaos")
	digest := func() string {
		b, err := os.ReadFile(binary)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(b)
		return hex.EncodeToString(sum[:])
	}
	chaosPlugin(t, plugins, "chaos")
	before := digest()
	path := file(t, twoSites+fmt.Sprintf("plugin_dir = %q\ntransport \"chaos\" {\n  plugin = \"impi-transport-chaos\"\n  sha256 = %q\n  config { around = \"tcp\" }\n}\nroute \"*\" {\n  prefer = [\"chaos\"]\n  resume = true\n}\n", plugins, before))
	r := startJob(t, 2, "-config", path)
	plugin := func() (int, string, string) {
		return impiNode(t, "", "plugins", "reload", "-run-dir", r.base, "chaos")
	}
	b, err := os.ReadFile(binary)
	if err == nil {
		err = os.Remove(binary)
	}
	if err == nil {
		err = os.WriteFile(binary, append(b, "# another release\n"...), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	after := digest()
	if status, out, errs := plugin(); status == statusOK || !strings.Contains(out+errs, "the file has sha256 "+after+", the config wants "+before) {
		t.Errorf("before the file says so: status %d\n%s%s", status, out, errs)
	}
	rewrite(t, path, before, after)
	status, out, errs := r.reload(t)
	want := fmt.Sprintf("site alpha: transport chaos: sha256: %s -> %s: for its next process, which impi-node plugins reload chaos starts\n", before, after)
	if status != statusOK || errs != "" || !strings.Contains(out, want) || strings.Contains(out, "needs a restart") {
		t.Errorf("reload: status %d\n%s%s", status, out, errs)
	}
	if status, out, errs := plugin(); status != statusOK || strings.Count(out, "replaced by") != 2 {
		t.Errorf("after that: status %d\n%s%s", status, out, errs)
	}
	if status, out, errs := r.reload(t); status != statusOK || errs != "" || strings.Count(out, "says what it said before") != 2 {
		t.Errorf("again: status %d\n%s%s", status, out, errs)
	}
}
