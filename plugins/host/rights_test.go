package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/plugins/host/rights"
)

// tries is a program that tries what a plugin has no business to do. It writes a line for each of
// them that worked.
const tries = `
grep -q '^NoNewPrivs:.1' /proc/self/status || echo gains privileges
(echo 'evil' > "$HOME/.profile") 2>/dev/null && echo writes
(: > "$HOME/there") 2>/dev/null && echo truncates
mkdir "$HOME/d" 2>/dev/null && echo makes folders
ln -s x "$HOME/l" 2>/dev/null && echo makes links
rm "$HOME/there" 2>/dev/null && echo removes
mv "$HOME/there" "$TMPDIR/gone" 2>/dev/null && echo moves
kill -0 "$NODE" 2>/dev/null && echo signals
readlink "/proc/$NODE/exe" >/dev/null 2>&1 && echo looks into the node
(exec 3< "/proc/$NODE/fd/1") 2>/dev/null && echo takes its files
`

// needs is what plugins do. It writes a line for each that does not work.
const needs = `
echo x > "$TMPDIR/x" || echo no temporary files
echo x > /dev/null || echo no devices
echo x > /proc/self/comm || echo no name
cat "$HOME/there" >/dev/null || echo no reading
(sleep 60 & kill $!) || echo no signals to its own
sh -c true || echo no programs
`

// landlock is the version of the kernel's Landlock; 0: none.
func landlock() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// closedFolder makes a folder in which confined plugins may change nothing, in the checkout, or, if
// that is in a folder for temporary files, in the user's caches.
func closedFolder(t *testing.T) string {
	t.Helper()
	here, _ := filepath.Abs(".")
	caches, _ := os.UserCacheDir()
	for _, parent := range []string{here, caches} {
		open := slices.ContainsFunc(writable(&Config{}, ""), func(dir string) bool {
			below, err := filepath.Rel(dir, parent)
			return err == nil && filepath.IsLocal(below)
		})
		if parent == "" || open || os.MkdirAll(parent, 0o700) != nil {
			continue
		}
		if home, err := os.MkdirTemp(parent, "impi-test-home-"); err == nil {
			t.Cleanup(func() { os.RemoveAll(home) })
			return home
		}
	}
	skips.NotRun(t, "a folder outside of those for temporary files", "put the checkout elsewhere, or set HOME")
	return ""
}

// A confined process cannot do what plugins need not, and can do what they need; the node keeps all
// its rights, and an unconfined process has them, too.
func TestConfined(t *testing.T) {
	if landlock() < rights.SignalsSince {
		skips.NotRun(t, "Landlock of version 6 in the kernel", "run it on Linux 6.12 or newer with landlock among its security modules")
	}
	home := closedFolder(t)
	if err := os.WriteFile(filepath.Join(home, "there"), []byte("here"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(unconfined bool, script string) string {
		t.Helper()
		cfg := &Config{Unconfined: unconfined}
		cmd := exec.Command("/bin/sh", "-c", script)
		cmd.Env = append(os.Environ(), "HOME="+home, "TMPDIR="+t.TempDir(), "NODE="+strconv.Itoa(os.Getpid()))
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		cmd.SysProcAttr = &syscall.SysProcAttr{}
		p := &process{cmd: cmd, log: hclog.NewNullLogger(), restrict: func() error { return nil }}
		p.confine(cfg, t.TempDir())
		over := make(chan struct{})
		defer close(over)
		if err := startProcess(cmd, p.restrict, over); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // what it says counts
		return out.String()
	}
	if done := run(false, tries); done != "" {
		t.Errorf("a confined plugin\n%s", done)
	}
	if done := run(false, needs); done != "" {
		t.Errorf("a confined plugin has\n%s", done)
	}
	if text, err := os.ReadFile(filepath.Join(home, "there")); err != nil || string(text) != "here" {
		t.Errorf("%q, %v", text, err)
	}
	if done := run(true, tries); strings.Count(done, "\n") < 9 {
		t.Errorf("an unconfined plugin only\n%s", done)
	}
	if err := os.WriteFile(filepath.Join(home, "mine"), nil, 0o600); err != nil {
		t.Errorf("the node has lost rights: %v", err)
	}
}
