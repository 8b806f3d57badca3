package peers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/skips"
)

// TestSourcePackages: of a machine's package sources, the one for its release with
// main gives the source packages, in either format.
func TestSourcePackages(t *testing.T) {
	skips.ProgramOf(t, "apt-get", "apt")
	const want = "Types: deb-src\nURIs: http://mirror.example/debian/\nSuites: bookworm\nComponents: main\n"
	for _, c := range []struct {
		name, file, text string
		ok               bool
	}{
		{"stanzas", "x.sources", "Types: deb\nURIs: http://mirror.example/other\nSuites: other\nComponents: main\n\n# why\nTypes: deb\nURIs: http://mirror.example/debian\n" +
			"Suites: bookworm bookworm-updates\nComponents: main\n", true},
		{"lines", "x.list", "# deb http://mirror.example/no bookworm main\ndeb [arch=amd64] http://mirror.example/debian bookworm main contrib\n", true},
		{"disabled", "x.sources", "Types: deb\nEnabled: no\nURIs: http://mirror.example/debian\nSuites: bookworm\nComponents: main\n", false},
		{"another release", "x.list", "deb http://mirror.example/debian trixie main\n", false},
		{"not main", "x.list", "deb http://mirror.example/debian bookworm contrib\n", false},
		{"nonsense", "x.list", "deb [ http\ndeb x\n\n", false},
	} {
		dir := t.TempDir()
		conf := filepath.Join(dir, "apt.conf")
		t.Setenv("APT_CONFIG", conf)
		if err := errors.Join(os.WriteFile(filepath.Join(dir, c.file), []byte(c.text), 0o600),
			os.WriteFile(conf, fmt.Appendf(nil, "Dir::Etc::sourcelist \"/dev/null\";\nDir::Etc::sourceparts %q;\n", dir), 0o600)); err != nil {
			t.Fatal(err)
		}
		got, err := sourcePackages(t.Context(), "bookworm")
		if c.ok && (err != nil || !strings.HasPrefix(got, want)) || !c.ok && !errors.Is(err, ErrImpossible) {
			t.Errorf("%s: %v %q", c.name, err, got)
		}
	}
}

func TestCodename(t *testing.T) {
	file := filepath.Join(t.TempDir(), "os-release")
	for _, c := range []struct {
		text, want string
		err        error
	}{
		{"ID=debian\nVERSION_CODENAME=bookworm\n", "bookworm", nil},
		{"ID=\"fedora\"\nPRETTY_NAME=\"Fedora 40\"\n", "", ErrImpossible},
	} {
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := codename(file); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%q, %v", got, err)
		}
	}
}

// TestFind: an installation counts only if it was built with the recipe of today, in its
// place of today.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(DirVariable, dir)
	if _, err := lam.find(); !errors.Is(err, ErrMissing) {
		t.Errorf("nothing there: %v", err)
	}
	in := &Install{Prefix: lam.prefix(dir), Recipe: lam.recipe()}
	if err := errors.Join(os.MkdirAll(filepath.Join(in.Prefix, "bin"), 0o755), os.WriteFile(in.Bin("mpirun"), nil, 0o755), in.write()); err != nil {
		t.Fatal(err)
	}
	if got, err := lam.find(); err != nil || *got != *in {
		t.Errorf("%+v, %v", got, err)
	}
	in.Recipe = "another"
	if err := in.write(); err != nil {
		t.Fatal(err)
	}
	if _, err := lam.find(); !errors.Is(err, ErrMissing) {
		t.Errorf("built in another way: %v", err)
	}
}

// TestLock: the second builder is told that it waits, and goes on after the first.
func TestLock(t *testing.T) {
	dir := t.TempDir()
	unlock, err := lock(t.Context(), dir, func() { t.Error("the first waits") })
	if err != nil {
		t.Fatal(err)
	}
	waits := 0
	unlockToo, err := lock(t.Context(), dir, func() { waits++; unlock() })
	if err != nil || waits != 1 {
		t.Fatalf("%v, told %d times", err, waits)
	}
	unlockToo()
}

func TestChecksumOfTheArchive(t *testing.T) {
	file := filepath.Join(t.TempDir(), lamOrigin.archive)
	if err := os.WriteFile(file, []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := lamOrigin.checkSum(file); err == nil || !strings.Contains(err.Error(), lamOrigin.sha256) {
		t.Errorf("%v", err)
	}
}

func TestTailKeepsTheEnd(t *testing.T) {
	var x tail
	for range 1000 {
		_, _ = x.Write([]byte("0123456789"))
	}
	_, _ = x.Write([]byte("end"))
	if s := x.String(); len(s) != tailBytes || !strings.HasSuffix(s, "789end") {
		t.Errorf("%d bytes: %s", len(s), s)
	}
}
