package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/launch/sshtest"
	"github.com/openimpi/impi/internal/netns"
	"github.com/openimpi/impi/internal/skips"
)

// hostFile is a file with some machines of two procs.
func hostFile(t *testing.T, names ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "nodes")
	if err := os.WriteFile(file, []byte(strings.Join(names, " slots=2\n")+" slots=2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestMachinesOfTheCommandLine(t *testing.T) {
	file := hostFile(t, "a", "b", "c", "d", "e")
	if o := parsed(t, "-hostfile", file, "start"); !slices.Equal(o.machines.counts, []int{2, 4}) || o.machines.procs() != 8 {
		t.Errorf("%+v, %d procs", o.machines, o.machines.procs())
	}
	if o := parsed(t, "-hostfile", hostFile(t, "a"), "start"); !slices.Equal(o.machines.counts, []int{1}) {
		t.Errorf("%+v", o.machines)
	}
	if o := parsed(t, "-hostfile", file, "-machines", "1,5", "start"); !slices.Equal(o.machines.counts, []int{1, 5}) {
		t.Errorf("%+v", o.machines)
	}
	for _, tc := range []struct{ args, want string }{
		{"-hostfile " + file + " -machines 6 start", `"6": write numbers from 1 to the 5 machines of`},
		{"-hostfile " + file + " pingpong", "-hostfile is for start"},
		{"-hostfile " + file + " -sizes 4 start", "do not go with it"},
		{"-machines 2 start", "-hostfile has to say which"},
		{"-hostfile " + file + "0 start", "no such file"},
	} {
		if _, err := parse(strings.Fields(tc.args), &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %s", tc.args, err, tc.want)
		}
	}
}

// Launchers get the first machines, in the form that they read.
func TestHostsOfARun(t *testing.T) {
	m := parsed(t, "-hostfile", hostFile(t, "a", "me@b", "c"), "start").machines
	m.dir = t.TempDir()
	for form, want := range map[string]string{colonForm: "a:2\nme@b:2\n", slotsForm: "a slots=2\nme@b slots=2\n"} {
		file, procs, err := m.hosts(form, 2)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(file)
		if string(got) != want || procs != 4 || err != nil {
			t.Errorf("%q, %d procs, %v; want %q", got, procs, err, want)
		}
	}
}

// TestStartOnMachines starts the program by ssh on three machines, and says how long it takes.
func TestStartOnMachines(t *testing.T) {
	skips.Short(t)
	machines := netns.New(t, 3)
	config := sshtest.StartOn(t, machines)
	bin := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin+"/", ".", "../impi-node", "../impiexec").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	script := fmt.Sprintf("#!/bin/sh\nexec %s -F %s \"$@\"\n", skips.ProgramOf(t, "ssh", "openssh-client"), config)
	if err := os.WriteFile(bin+"/ssh", []byte(script), 0o755); err != nil { //nolint:gosec // a script
		t.Fatal(err)
	}
	names := make([]string, len(machines))
	for i, m := range machines {
		names[i] = m.Address
	}
	cmd := machines[0].Command(t.Context(), bin+"/impi-bench", "-quiet", "-json", "-repeat", "1", "-machines", "1,3", "-hostfile", hostFile(t, names...), "start")
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, errs.String())
	}
	var report struct{ Results []result }
	if err := json.Unmarshal(out, &report); err != nil || len(report.Results) != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	r := report.Results[0]
	if r.Axis != "machines" || r.Procs != 6 || len(r.Rows) != 2 {
		t.Fatalf("%+v", r)
	}
	for i, n := range []int{1, 3} {
		if r.Rows[i].Size != n || r.Rows[i].Values[ours] <= 0 {
			t.Errorf("%+v, want %d machines and a time", r.Rows[i], n)
		}
	}
}
