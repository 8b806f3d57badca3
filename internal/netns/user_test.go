package netns

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/openimpi/impi/internal/skips"
)

// A user who is not root makes machines in a user namespace. This test is also the program there.
func TestAsRoot(t *testing.T) {
	if os.Getenv("AS_ROOT") != "" {
		if os.Getuid() != 0 || !New(t, 2)[0].Idle() {
			t.Error("there are no machines of their own")
		}
		return
	}
	skips.Programs(t, "unshare", "ip")
	// The user must be able to enter the folders of the program and of its files.
	dir, err := os.MkdirTemp("", "user")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(self)
	program := filepath.Join(dir, "netns.test")
	if err == nil {
		err = os.WriteFile(program, text, 0o700)
	}
	const nobody = 65534
	credential := &syscall.Credential{Uid: uint32(os.Getuid()), Gid: uint32(os.Getgid()), NoSetGroups: true}
	if os.Getuid() == 0 {
		credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	for _, path := range []string{dir, program} {
		if err == nil && os.Getuid() == 0 {
			err = os.Chown(path, nobody, nobody)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	run := func(cmd *exec.Cmd) (string, error) {
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "AS_ROOT=1", "TMPDIR="+dir)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run(AsRoot(t.Context(), "true")); err != nil {
		skips.NotRun(t, "users cannot have user namespaces here ("+out+" "+err.Error()+")", "sysctl kernel.unprivileged_userns_clone=1, or as this kernel has it")
	}
	// In it, that the test is skipped is a failure, too.
	out, err := run(AsRoot(t.Context(), program, "-test.run=^TestAsRoot$", "-test.v"))
	if err != nil || !strings.Contains(out, "--- PASS: TestAsRoot") {
		t.Errorf("%v: %s", err, out)
	}
}
