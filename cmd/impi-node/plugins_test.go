package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/conformance"
	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/internal/soak"
	"github.com/openimpi/impi/plugins/sdk"
)

// pluginDir has this test binary as the plugin for tcp, a program that is no plugin,
// and a file that others can write.
func pluginDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\nIMPI_BUILTIN_TRANSPORT=tcp IMPI_TEST_NODE=1 exec '" + self + "'\n"
	for name, text := range map[string]string{"tcp": script, "liar": script, "no": "#!/bin/sh\necho hello\n", "open": script} {
		if err := os.WriteFile(filepath.Join(dir, "impi-transport-"+name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "impi-transport-open"), 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestPluginsList(t *testing.T) {
	dir := pluginDir(t)
	status, out, err := impiNode(t, "", "plugins", "list", "-json", "-dir", dir)
	var got struct{ Plugins []listed }
	if e := json.Unmarshal([]byte(out), &got); e != nil || status != statusBad || err != "" {
		t.Fatalf("status %d, %v\n%s%s", status, e, out, err)
	}
	for _, p := range got.Plugins {
		key := p.Name
		if p.Builtin {
			key += " built in"
		}
		want := map[string]string{"liar": `"tcp"`, "no": "hello", "open": "writable"}[key]
		if want == "" && (p.About == nil || p.Error != "" || len(p.About.Planes) == 0 || p.About.SDK == "" || p.About.Protocol == 0) {
			t.Errorf("%s: %+v", key, p)
		}
		if want != "" && (p.About != nil || !strings.Contains(p.Error, want)) {
			t.Errorf("%s: the error is %q", key, p.Error)
		}
	}
	if len(got.Plugins) != 4+4 {
		t.Errorf("%d plugins", len(got.Plugins))
	}
	_, table, _ := impiNode(t, "", "plugins", "list", "-dir", dir)
	for _, words := range []string{"DATA PLANES", "impi-go-sdk", "peer-shm", "liar does not load", "MEMORY", " MB"} {
		if !strings.Contains(table, words) {
			t.Errorf("%q is not in\n%s", words, table)
		}
	}
}

// A plugin one version older is listed like any other, with what it lacks.
func TestPluginsOfOtherAges(t *testing.T) {
	dir := pluginDir(t)
	path := filepath.Join(dir, "impi-transport-tcp")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for protocols, want := range map[string]string{
		"1": "tcp speaks version 1 of the protocol, this node 2; it lacks\n  health: ",
		"3": "tcp could speak version 3 of the protocol, this node 2: update impi-node",
	} {
		script := strings.Replace(string(text), "IMPI_TEST_NODE=1", "IMPI_TEST_NODE=1 "+envProtocols+"="+protocols, 1)
		if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, verb := range [][]string{{"info", path}, {"list", "-dir", dir}} {
			_, out, _ := impiNode(t, "", append([]string{"plugins"}, verb...)...)
			if !strings.Contains(out, want) {
				t.Errorf("%s of version %s: %q is not in\n%s", verb[0], protocols, want, out)
			}
		}
	}
	// Two versions newer: what is wrong, and what to do.
	script := strings.Replace(string(text), "IMPI_TEST_NODE=1", "IMPI_TEST_NODE=1 "+envProtocols+"=4", 1)
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	if status, _, out := impiNode(t, "", "plugins", "info", path); status != statusBad ||
		!strings.Contains(out, "speaks version 4 of the transport protocol, this node 1 and 2") || !strings.Contains(out, "update impi-node") {
		t.Errorf("status %d\n%s", status, out)
	}
}

func TestPluginsInfo(t *testing.T) {
	dir := pluginDir(t)
	for _, arg := range []string{"tcp", filepath.Join(dir, "impi-transport-tcp")} {
		status, out, err := impiNode(t, "", "plugins", "info", "-dir", dir, arg)
		if status != 0 || !strings.Contains(out, "nodelay = true") || !strings.Contains(out, "sha256 = ") {
			t.Errorf("%s: status %d\n%s%s", arg, status, out, err)
		}
	}
	status, out, err := impiNode(t, "", "plugins", "info", "quic", "-json")
	var site conformance.Site
	if e := json.Unmarshal([]byte(out), &site); e != nil || status != 0 || site.Name != "quic" || len(site.Settings) == 0 {
		t.Errorf("status %d, %v\n%s%s", status, e, out, err)
	}
	if status, _, err := impiNode(t, "", "plugins", "info", "-dir", dir, "pigeon"); status != statusBad || !strings.Contains(err, "no such file") {
		t.Errorf("status %d\n%s", status, err)
	}
}

// What verify prints is a part of a job file, and with that file verify is content
// until the plugin changes.
func TestPluginsVerify(t *testing.T) {
	dir := pluginDir(t)
	status, block, err := impiNode(t, "", "plugins", "verify", "-dir", dir, "tcp")
	if status != 0 || err != "" {
		t.Fatalf("status %d\n%s", status, err)
	}
	job := file(t, "plugin_dir = \""+dir+"\"\n"+block+twoSites)
	if status, out, err := impiNode(t, "", "validate", job); status != 0 {
		t.Fatalf("what verify prints is not right: status %d\n%s%s", status, out, err)
	}
	if status, out, err := impiNode(t, "", "plugins", "verify", "-config", job); status != 0 || !strings.Contains(out, "trusts") {
		t.Errorf("status %d\n%s%s", status, out, err)
	}
	f, e := os.OpenFile(filepath.Join(dir, "impi-transport-tcp"), os.O_APPEND|os.O_WRONLY, 0)
	if e == nil {
		_, e = f.WriteString("\n")
	}
	if e != nil {
		t.Fatal(e)
	}
	f.Close()
	for _, verb := range []string{"verify", "list"} {
		if status, out, err := impiNode(t, "", "plugins", verb, "-config", job); status != statusBad || !strings.Contains(out+err, "the job file trusts") {
			t.Errorf("%s: status %d\n%s%s", verb, status, out, err)
		}
	}
	status, out, err := impiNode(t, "", "plugins", "verify", "-dir", dir, "-json")
	if status != statusBad || !strings.Contains(out, `"sha256"`) || !strings.Contains(out, "writable") || err != "" {
		t.Errorf("status %d\n%s%s", status, out, err)
	}
}

func TestPluginsUsage(t *testing.T) {
	for args, want := range map[string]string{
		"plugins frobnicate":                    "known here: info, install, list, lock, new, publish, reload, test, verify",
		"plugins info":                          "one plugin",
		"plugins test a b":                      "one plugin",
		"plugins list tcp":                      "info tcp",
		"plugins new":                           "one name",
		"plugins verify -dir a -config b":       "either -dir or -config",
		"plugins verify -config b tcp":          "leave the names out",
		"plugins list -module x":                "module",
		"plugins new Mine":                      "no name for a transport",
		"plugins new -impi /nonexistent mine":   "no checkout",
		"plugins new -vendor a\"b mine":         "quotes",
		"plugins verify tcp-that-is-nowhere":    "no such file",
		"plugins verify quic":                   "built in",
		"plugins verify -dir /nonexistent/dirs": "no plugins",
	} {
		cmd, out, err := command(t, "", strings.Fields(args)...)
		cmd.Dir = t.TempDir()
		_ = cmd.Run() // the status says it
		if cmd.ProcessState.Success() || !strings.Contains(err.String(), want) || out.String() != "" {
			t.Errorf("%s: %v, want %q in\n%s%s", args, cmd.ProcessState, want, out, err)
		}
		if left, _ := os.ReadDir(cmd.Dir); len(left) > 0 {
			t.Errorf("%s leaves %v behind", args, left)
		}
	}
	for _, args := range [][]string{{"plugins"}, {"plugins", "help"}, {"plugins", "new", "-h"}, {"help", "plugins"}} {
		if status, out, err := impiNode(t, "", args...); status != 0 || !strings.Contains(out, "plugins verify") || err != "" {
			t.Errorf("%q: status %d\n%s%s", args, status, out, err)
		}
	}
}

// The scaffold is a transport that builds, is formatted, passes its own tests and
// keeps the whole contract.
func TestPluginsNew(t *testing.T) {
	tool := skips.Program(t, "go")
	soak.SkipUnlessSoak(t, "a plugin is built in a module of its own")
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	where := t.TempDir()
	cmd, out, errOut := command(t, "", "plugins", "new", "-impi", root, "-vendor", "somebody", "mine")
	cmd.Dir = where
	if err := cmd.Run(); err != nil || !strings.Contains(out.String(), "README.md") {
		t.Fatalf("%v\n%s%s", err, out, errOut)
	}
	dir := filepath.Join(where, "impi-transport-mine")
	main, err := os.ReadFile(filepath.Join(dir, "main.go"))
	if n := bytes.Count(main, []byte("\n")); err != nil || n > 30 {
		t.Errorf("%v: the main has %d lines", err, n)
	}
	do := func(name string, args ...string) string {
		t.Helper()
		c := exec.Command(name, args...)
		c.Dir = dir
		c.Env = append(os.Environ(), "GOFLAGS=-trimpath", "GOPROXY=off", "GOWORK=off")
		text, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, text)
		}
		return string(text)
	}
	binary := filepath.Join(dir, "plugins", "impi-transport-mine")
	if err := os.Mkdir(filepath.Dir(binary), 0o755); err != nil {
		t.Fatal(err)
	}
	do(tool, "build", "-o", binary, ".")
	do(tool, "vet", "./...")
	do(tool, "test", "./...")
	scaffoldFindsFaults(t, tool, dir)
	if fmt, err := exec.LookPath("gofmt"); err == nil {
		if bad := do(fmt, "-l", "."); bad != "" {
			t.Errorf("not formatted: %s", bad)
		}
	}
	status, table, problems := impiNode(t, "", "plugins", "test", "-json", "-plane", "fd", binary)
	var report conformance.Report
	if err := json.Unmarshal([]byte(table), &report); err != nil || status != 0 || !report.Correct || !report.Robust || report.Site.Vendor != "somebody" {
		t.Errorf("status %d, %v\n%s", status, err, problems)
	}
	cmd, _, errOut = command(t, "", "plugins", "new", "mine")
	cmd.Dir = where
	if err := cmd.Run(); err == nil || !strings.Contains(errOut.String(), "exists already") {
		t.Errorf("a second time: %v\n%s", err, errOut)
	}
}

// scaffoldFindsFaults changes what the scaffold says or does of its plane, which its own test
// finds.
func scaffoldFindsFaults(t *testing.T, tool, dir string) {
	t.Helper()
	file := filepath.Join(dir, "transport.go")
	sound, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, fault, words string }{
		{"{transports.PlaneFD}", "{transports.PlaneRing}", "Dial gives a kernel socket (transports.Socket), which can leave by fd; Capabilities lists ring"},
		{"return socket.FromConn(c)\n", "made, err := socket.FromConn(c)\n\treturn closed{made}, err\n", "bad file descriptor"},
	} {
		faulty := strings.Replace(string(sound), c.old, c.fault, 1) + `
type closed struct{ transports.Socket }

func (c closed) Detach() (int, []byte, error) {
	fd, preread, err := c.Socket.Detach()
	_ = syscall.Close(fd)
	return fd, preread, err
}
`
		faulty = strings.Replace(faulty, "\t\"sync/atomic\"\n", "\t\"sync/atomic\"\n\t\"syscall\"\n", 1)
		if err := os.WriteFile(file, []byte(faulty), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(tool, "test", "-run", "TestContract/planes", ".")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=-trimpath", "GOPROXY=off", "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "T-ABOUT-06: ") || !strings.Contains(string(out), c.words) {
			t.Errorf("%s in place of %s is not found: %v\n%s", c.fault, c.old, err, out)
		}
	}
	if err := os.WriteFile(file, sound, 0o644); err != nil {
		t.Fatal(err)
	}
}

// A new module requires what can be had: a checkout, given or found, or the release of the program.
func TestPluginsNewRequires(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	nowhere := t.TempDir()
	prefix := t.TempDir() // as make install leaves it
	text, err := os.ReadFile(filepath.Join(root, sdkFolder, "go.mod"))
	source := filepath.Join(prefix, "share", "impi", "sdk")
	if err := errors.Join(err, os.MkdirAll(filepath.Join(source, sdkFolder), 0o755), os.WriteFile(filepath.Join(source, sdkFolder, "go.mod"), text, 0o644),
		os.WriteFile(filepath.Join(source, sdkFolder, "go.sum"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	of := func(version string) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Path: ourModule, Version: version}}
	}
	built, released, version := of("v0.1.1-0.20260101000000-0123456789ab"), of("v1.2.3"), "v"+sdk.Version
	for name, c := range map[string]struct {
		given            string
		info             *debug.BuildInfo
		places           []string
		version, replace string
		err              string
	}{
		"a checkout":         {root, built, []string{nowhere}, version, root, ""},
		"no checkout":        {nowhere, built, []string{root}, "", "", "no checkout of"},
		"inside of one":      {"", built, []string{nowhere, filepath.Join(root, "cmd", "impi-node")}, version, root, ""},
		"installed":          {"", released, []string{filepath.Join(prefix, "bin"), nowhere}, version, source, ""},
		"a release":          {"", released, []string{nowhere}, version, "", ""},
		"changed":            {"", of("v1.2.3+dirty"), []string{nowhere}, "", "", "-impi CHECKOUT"},
		"built and moved":    {"", built, []string{nowhere}, "", "", "-impi CHECKOUT"},
		"nothing to be seen": {"", nil, []string{""}, "", "", "-impi CHECKOUT"},
	} {
		var s seed
		err := s.requireOf(c.given, t.TempDir(), c.info, c.places...)
		if c.err == "" && (err != nil || s.Version != c.version || s.Replace != c.replace) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
	cmd, _, errOut := command(t, "", "plugins", "new", "mine")
	cmd.Dir = nowhere
	if err := cmd.Run(); err == nil || !strings.Contains(errOut.String(), "-impi CHECKOUT") {
		t.Errorf("%v\n%s", err, errOut)
	}
	if left, err := os.ReadDir(nowhere); err != nil || len(left) > 0 {
		t.Errorf("%v: %v are left", err, left)
	}
}

// A plugin's main is not longer than what a reader can take in at a glance.
func TestMainsAreShort(t *testing.T) {
	mains, err := filepath.Glob("../impi-transport-*/main.go")
	if err != nil || len(mains) < 3 {
		t.Fatalf("%v: %q", err, mains)
	}
	for _, name := range mains {
		text, err := os.ReadFile(name)
		if n := bytes.Count(text, []byte("\n")); err != nil || n > 30 {
			t.Errorf("%v: %s has %d lines", err, name, n)
		}
	}
}
