package ctest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/skips"
)

// controlGroup makes the control group of a machine, in whose namespace it has a tree of its own,
// and returns what a shell does to be in it.
func controlGroup(t *testing.T) (enter string) {
	t.Helper()
	trees := []string{"/sys/fs/cgroup"}
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err != nil {
		trees = []string{"/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified"}
	}
	for _, tree := range trees {
		dir, err := os.MkdirTemp(tree, "impi-trial-")
		if err != nil {
			skips.NotRun(t, "systemd cannot have a control group", "run as root, with "+tree+" writable")
		}
		t.Cleanup(func() {
			var below []string
			_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
				if err == nil && d.IsDir() {
					below = append(below, path)
				}
				return nil
			})
			for _, path := range slices.Backward(below) {
				_ = os.Remove(path)
			}
		})
		enter += "echo $$ >" + dir + "/cgroup.procs; "
	}
	return enter
}

// runsUnits has a systemd of its own install a package, run its units, upgrade and remove it, for
// Debian and then RPM: each has the package and the one to which it is upgraded. That systemd is
// the first process of a machine made of namespaces, and the services are as confined as on any
// other machine.
func runsUnits(t *testing.T, deb, rpm [2]string) {
	skips.ProgramOf(t, "dpkg", "dpkg")
	unshare := skips.ProgramOf(t, "unshare", "util-linux")
	skips.ProgramOf(t, "ip", "iproute2")
	if _, err := os.Stat("/usr/lib/systemd/systemd"); err != nil {
		skips.NotRun(t, "there is no systemd", "install systemd")
	}
	if os.Geteuid() != 0 {
		skips.NotRun(t, "systemd starts as root alone", "run the test as root")
	}
	dir := t.TempDir()
	for from, to := range map[string]string{deb[0]: "old.deb", deb[1]: "next.deb", rpm[0]: "old.rpm", rpm[1]: "next.rpm", "testdata/systemd/operate.sh": "operate.sh", "testdata/names.c": "names.c"} {
		in(t, "", "cp", from, filepath.Join(dir, to))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	boot := controlGroup(t) + "exec " + unshare + " --fork --kill-child --mount --pid --uts --net --ipc --cgroup bash testdata/systemd/boot.sh " + dir
	log, err := Run(ctx, "", nil, "bash", "-c", boot)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 77 {
		skips.NotRun(t, "systemd cannot be started in namespaces: "+strings.TrimSpace(log), "run as root where overlayfs can be mounted")
	}
	text, err := os.ReadFile(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	var got []string
	for line := range strings.Lines(string(text)) {
		if _, said, ok := strings.Cut(line, "is: "); ok {
			got = append(got, strings.TrimSpace(said))
		}
	}
	slices.Sort(got) // sites end in any order
	want := []string{
		"confined 3", "failed 0", "installed disabled", "killed server active success", "names active success",
		"nobody came failed exit-code", "rank 0 finds the port", "rank 1 finds the port",
		"reloaded active success", "removed names inactive success", "removed server inactive success", "restarted active success", "rotated 1",
		"rpm installed disabled", "rpm names active success", "rpm removed names inactive success", "rpm units 0 not-found",
		"rpm upgraded names active success", "rpm upgraded names restarted",
		"second server active success", "server active success", "server after rotation active success", "server after the job inactive success",
		"server with certificates active success",
		"site 0 ends with 0", "site 1 ends with 0", "started again 0", "units 0", "unreadable 1",
		"upgraded names active success", "upgraded names restarted", "upgraded server untouched", "user own",
	}
	if !slices.Equal(got, want) {
		t.Errorf("it says\n%s\nand not\n%s\n%s\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"), text, log)
	}
}
