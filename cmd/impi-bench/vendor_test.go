package main

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openimpi/impi/config"
)

// The path of a plugin's file becomes a block with its settings, in a job of two sites.
func TestVendorsPlugin(t *testing.T) {
	dir := t.TempDir()
	plugin := filepath.Join(dir, "impi-transport-fabric")
	if err := os.WriteFile(plugin, []byte("#!/bin/sh\n"), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	o := parsed(t, "-transport", plugin, "-setting", `provider = "tcp"`, "-setting", "window = 65536", "pingpong")
	if o.transport != "fabric" {
		t.Fatalf("the transport is %q", o.transport)
	}
	w := &own{o: &o, self: plugin}
	file := filepath.Join(dir, "job.hcl")
	text := w.job("pingpong", 2, []int{8})
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	job, faults := config.Load(file, config.Options{
		Builtins: []config.Builtin{{Name: "shm"}, {Name: "tcp"}}, Local: func(netip.Addr) bool { return true }, Environ: os.Environ(),
	})
	if faults.HasErrors() {
		t.Fatalf("%v in\n%s", faults.Err(), text)
	}
	if len(job.Sites) != 2 || !strings.Contains(text, `prefer = ["fabric"]`) || !strings.Contains(text, "    provider = \"tcp\"\n    window = 65536\n") {
		t.Errorf("the job is\n%s", text)
	}
	for what, args := range map[string][]string{
		"NAME":           {"-transport", dir + "/plugin", "pingpong"},
		"no such file":   {"-transport", "./impi-transport-nowhere", "pingpong"},
		"give the path":  {"-setting", "a = 1", "-transport", "tcp", "pingpong"},
		"-block are for": {"-block", "confine = false", "-transport", "tcp", "pingpong"},
		"that need two":  {"-transport", plugin, "-native", "-peer", "mpich", "pingpong"},
		"needs -transpo": {"-transport", plugin, "-beside", "in-process", "pingpong"},
	} {
		if _, err := parse(args); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// A plugin's file is run with the lines that are given for its block, and links are made by it.
func TestVendorsBlock(t *testing.T) {
	node := impiNode(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	used := filepath.Join(dir, "used")
	plugin := filepath.Join(dir, "impi-transport-tcp")
	script := fmt.Sprintf("#!/bin/sh\n[ -z \"$PLUGIN_CLIENT_CERT\" ] || exit 7\necho x >>\"$USED\"\nexec %q\n", self)
	if err := os.WriteFile(plugin, []byte(script), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	o := parsed(t, "-node", node, "-repeat", "1", "-quiet", "-seconds", "0.01", "-sizes", "8", "-transport", plugin,
		"-block", "auto_mtls = false", "-block", fmt.Sprintf("env = { USED = %q }", used), "pingpong")
	var out bytes.Buffer
	if err := compare(t.Context(), o, &out); err != nil {
		t.Fatal(err)
	}
	if starts, err := os.ReadFile(used); err != nil || len(starts) < 4 || !strings.Contains(out.String(), "pingpong") {
		t.Errorf("its starts at two sites: %q, %v\n%s", starts, err, &out)
	}
}

// A command of the vendor's is measured by what it prints.
func TestLibrary(t *testing.T) {
	script := filepath.Join(t.TempDir(), "fabric-bench")
	if err := os.WriteFile(script, []byte(`#!/bin/sh
echo "$1: $2 $3 $4 for $5" >&2
echo a line of its own
echo '{"size": 64, "iterations": 1000, "seconds": 0.5}'
`), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	o := parsed(t, "-library", script+" tcp", "-seconds", "0.25", "pingpong")
	c := o.libraryContender()
	got, err := c.run(context.Background(), "pingpong", []int{64})
	if err != nil || len(got) != 1 || benchmarks["pingpong"].value(got[0]) != 250 {
		t.Errorf("its figures are %v, %v", got, err)
	}
	if c.skips("pingpong") || !c.skips("allreduce") {
		t.Error("it is asked for what only MPI has")
	}
	o.vendor.library = "false"
	if _, err := o.libraryContender().run(context.Background(), "pingpong", []int{64}); err == nil || !strings.Contains(err.Error(), "false pingpong") {
		t.Errorf("a command that fails: %v", err)
	}
}
