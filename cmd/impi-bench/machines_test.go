package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
		{"-hostfile " + file + " -machines 6 start", `"6": write numbers from 1 to 5, which`},
		{"-hostfile " + file + " pingpong", "-hostfile and -on are for start"},
		{"-hostfile " + file + " -sizes 4 start", "cannot be used with -hostfile or -on"},
		{"-machines 2 start", "-machines needs -hostfile"},
		{"-on ssh,pbs start", "-on pbs: write ssh, slurm or both"},
		{"-on ssh pingpong", "-hostfile and -on are for start"},
		{"-on ssh -machines 65 start", `"65": write numbers from 1 to 64, which`},
		{"-on ssh -hostfile " + file + " start", "use only one of the two"},
		{"-hostfile " + file + "0 start", "no such file"},
	} {
		if _, err := parse(strings.Fields(tc.args)); err == nil || !strings.Contains(err.Error(), tc.want) {
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
	bin := builtPrograms(t)
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
	results := resultsOf(t, cmd)
	if len(results) != 1 {
		t.Fatalf("%+v", results)
	}
	wantTimes(t, results[0], "start", 6, []int{1, 3}, ours)
}

// TestStartOnMadeMachines has impi-bench make the machines: network namespaces and a Slurm.
func TestStartOnMadeMachines(t *testing.T) {
	skips.Short(t)
	for program, of := range map[string]string{"sshd": "openssh-server", "slurmctld": "slurmctld", "slurmd": "slurmd", "srun": "slurm-client", "munged": "munge"} {
		skips.ProgramOf(t, program, of)
	}
	netns.New(t, 1) // where none can be made the test is skipped
	cmd := exec.CommandContext(t.Context(), builtPrograms(t)+"/impi-bench", "-quiet", "-json", "-repeat", "1", "-machines", "1,2", "-on", "ssh,slurm", "start")
	results := resultsOf(t, cmd)
	if len(results) != 2 {
		t.Fatalf("%+v", results)
	}
	wantTimes(t, results[0], "start by ssh", 4, []int{1, 2}, ours)
	wantTimes(t, results[1], "start by slurm", 4, []int{1, 2}, ours, oursOutside, oursBySrun)
}

// TestMachinesThatCannotBeMade: what is missing is said, and is an error if nothing is left.
func TestMachinesThatCannotBeMade(t *testing.T) {
	b := &testbed{ctx: t.Context()}
	defer b.close()
	t.Setenv("PATH", t.TempDir())
	_, err := b.make(bySSH, []int{1})
	if !errors.Is(err, errNoTestbed) || !strings.Contains(err.Error(), "start by ssh cannot be measured here: ") {
		t.Errorf("%v, want why machines cannot be made", err)
	}
	o := parsed(t, "-on", "ssh", "-machines", "1", "-quiet", "start")
	if _, err := o.compareTestbeds(t.Context(), io.Discard); !errors.Is(err, errNoTestbed) {
		t.Errorf("%v, want that nothing was measured", err)
	}
}

// builtPrograms is a folder with what starts programs on machines, and impi-bench.
func builtPrograms(t *testing.T) (bin string) {
	t.Helper()
	bin = t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin+"/", ".", "../impi-node", "../impiexec").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// resultsOf runs impi-bench, and reads its JSON.
func resultsOf(t *testing.T, cmd *exec.Cmd) []result {
	t.Helper()
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, errs.String())
	}
	var report struct{ Results []result }
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return report.Results
}

// wantTimes checks that a result has a time for each number of machines and each column.
func wantTimes(t *testing.T, r result, name string, procs int, machines []int, columns ...string) {
	t.Helper()
	if r.Benchmark != name || r.Axis != "machines" || r.Procs != procs || len(r.Rows) != len(machines) {
		t.Fatalf("%+v, want %s of %d procs on %d machines", r, name, procs, machines)
	}
	for i, n := range machines {
		for _, column := range columns {
			if r.Rows[i].Size != n || r.Rows[i].Values[column] <= 0 || len(r.Rows[i].Values) != len(columns) {
				t.Errorf("%+v, want %d machines and a time of %s", r.Rows[i], n, column)
			}
		}
	}
}
