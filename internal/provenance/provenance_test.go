package provenance

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/skips"
)

// The age of a result is counted in commits, up to the last one that changed what it is about.
func TestBehind(t *testing.T) {
	root := t.TempDir()
	skips.Program(t, "git")
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", root, "-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	run("init", "-q")
	change := func(file string) string {
		path := filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = f.WriteString("x")
		_ = f.Close()
		run("add", "-A")
		run("commit", "-qm", file)
		return run("rev-parse", "HEAD")
	}
	first := change("transports/a")
	behind := func(commit string, want int) {
		t.Helper()
		if n, err := CommitsBehind(root, commit, "transports", "internal/node"); n != want || err != nil {
			t.Errorf("%d behind, %v, not %d", n, err, want)
		}
	}
	behind(first, 0)
	change("README.md")
	behind(first, 0)
	change("internal/node/b")
	behind(first, 2)
	last := change("core/c")
	behind(first, 2)
	behind(last+"-dirty", 0)
	if _, err := CommitsBehind(root, "0123456789ab", "core"); err == nil {
		t.Error("a commit that is not there has an age")
	}
	if m, err := Now(root); err != nil || !strings.HasPrefix(last, m.Commit) {
		t.Errorf("%+v, %v", m, err)
	}
	if err := os.WriteFile(filepath.Join(root, "new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := Now(root)
	if err != nil || !strings.HasSuffix(m.Commit, "-dirty") {
		t.Errorf("%+v, %v", m, err)
	}
	if got := Commits("on " + Dates([]Stamp{m, m, {"2026-01-02", "abcdef0"}})); !slices.Equal(got, []string{m.Commit, "abcdef0"}) {
		t.Errorf("%v", got)
	}
}
