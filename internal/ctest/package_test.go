package ctest

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/internal/soak"
)

// staged makes the tree that packages are made of, with the kit's library and all programs.
func staged(t *testing.T, k *Kit) (stage string) {
	t.Helper()
	programs, err := filepath.Glob("../../cmd/impi*")
	if err != nil || len(programs) < 14 {
		t.Fatalf("%q, %v", programs, err)
	}
	in(t, "", "go", append([]string{"build", "-ldflags=-w", "-o", filepath.Join(k.Dir, "bin") + "/"}, programs...)...)
	stage = filepath.Join(t.TempDir(), "stage")
	words := []string{"stage", "BUILT=1", "BIN=" + filepath.Join(k.Dir, "bin"), "LIB=" + filepath.Join(k.Dir, "lib"), "STAGE=" + stage}
	if out, err := Run(t.Context(), "../..", nil, "make", words...); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return stage
}

// slim is the same tree, in which programs are empty that nothing runs: most of what making a package
// costs is to compress them.
func slim(t *testing.T, stage string) string {
	t.Helper()
	other := filepath.Join(t.TempDir(), "slim")
	in(t, "", "cp", "-al", stage, other)
	programs, err := filepath.Glob(filepath.Join(other, "opt/impi/bin/*"))
	if err != nil || len(programs) < 14 {
		t.Fatalf("%q, %v", programs, err)
	}
	for _, path := range programs {
		if slices.Contains([]string{"impi-node", "impi-server", "impiexec", "impicc"}, filepath.Base(path)) {
			continue
		}
		if err := errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	return other
}

// packed makes packages of a tree.
func packed(t *testing.T, stage string, more ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if out, err := Run(t.Context(), "../..", nil, "make", append([]string{"pack", "STAGE=" + stage, "PACKAGES=" + dir}, more...)...); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

// only returns the one file with an ending.
func only(t *testing.T, dir, ending string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*"+ending))
	if err != nil || len(found) != 1 {
		t.Fatalf("%q, %v", found, err)
	}
	return found[0]
}

// filesBelow are the files that are no directories below a folder, without those of the package
// manager.
func filesBelow(t *testing.T, root string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if name := strings.TrimPrefix(path, root); err == nil && !d.IsDir() && !strings.HasPrefix(name, "/var/") {
			list = append(list, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// copied is a copy of the sources in a folder of its own, without the repository.
func copied(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	files := strings.Fields(in(t, "../..", "git", "ls-files"))
	for _, name := range files {
		to := filepath.Join(dir, name)
		b, err := os.ReadFile(filepath.Join("../..", name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted, and not committed
		}
		s, err2 := os.Stat(filepath.Join("../..", name))
		if err := errors.Join(err, err2, os.MkdirAll(filepath.Dir(to), 0o755)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, b, s.Mode()); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// ownCache is a build cache with nothing in it, as on another machine: what is built with it shares
// no compiled package with an earlier build.
func ownCache(t *testing.T) string {
	t.Helper()
	return "GOCACHE=" + filepath.Join(t.TempDir(), "cache")
}

// TestTwoLinks: with the Makefile's flags a small program is the same to the last byte, in whichever
// folder it is built, and when all of it is compiled anew. TestTwoBuilds has all of them, and takes
// long.
func TestTwoLinks(t *testing.T) {
	skips.Programs(t, "git")
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\nSAME := ")
	flags, _, _ := strings.Cut(rest, "\n")
	if !found || strings.Count(string(text), "$(GO) build $(SAME) ") < 2 {
		t.Fatal("the Makefile does not build programs and library with the flags of SAME")
	}
	var sums [2][sha256.Size]byte
	for i := range sums {
		dir := copied(t)
		env := []string{"GOFLAGS="}
		if i == 1 {
			env = append(env, ownCache(t))
		}
		if out, err := Run(t.Context(), dir, env, "go", append(append([]string{"build"}, strings.Fields(flags)...), "-o", "program", "./cmd/impicc")...); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		b, err := os.ReadFile(filepath.Join(dir, "program"))
		if err != nil {
			t.Fatal(err)
		}
		sums[i] = sha256.Sum256(b)
	}
	if sums[0] != sums[1] {
		t.Error("a program that is built in two folders is not the same")
	}
}

// TestTwoBuilds: whoever builds packages in whichever folder gets the same ones, to the last byte. The
// second build compiles everything itself.
func TestTwoBuilds(t *testing.T) {
	soak.SkipUnlessSoak(t, "all programs and packages are built twice")
	skips.Programs(t, "make", "strip", "objdump", "cc", "git")
	sums := make(map[string][sha256.Size]byte)
	for i := range 2 {
		dir, env := copied(t), []string{"GOFLAGS="} // whatever this machine always has in it
		if i == 1 {
			env = append(env, ownCache(t))
		}
		for _, c := range []struct{ env, words []string }{
			{env, []string{"build"}},
			{nil, []string{"package", "BUILT=1", "VERSION=0.98.0"}},
		} {
			if out, err := Run(t.Context(), dir, c.env, "make", c.words...); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
		for _, kind := range []string{".deb", ".rpm"} {
			b, err := os.ReadFile(only(t, filepath.Join(dir, "out/packages"), kind))
			if err != nil {
				t.Fatal(err)
			}
			if sum := sha256.Sum256(b); i == 0 {
				sums[kind] = sum
			} else if sum != sums[kind] {
				t.Errorf("two builds of the %s differ", kind)
			}
		}
	}
}

// TestPackages: packages are the same when they are made again; they install, programs of
// theirs compile and run, an upgrade keeps what the operator has changed, and nothing stays behind.
// What is upgraded to has files of the same names, and another version.
func TestPackages(t *testing.T) {
	if os.Getenv(Installed) != "" {
		skips.NotRun(t, "an installed tree is tested", "unset "+Installed)
	}
	skips.Programs(t, "make", "strip", "objdump", "cc")
	dpkg, rpm := skips.Program(t, "dpkg"), skips.Program(t, "rpm")
	k := kit(t)
	stage := staged(t, k)
	first := packed(t, stage)
	next := slim(t, stage)
	nextDeb := only(t, packed(t, next, "KINDS=deb", "VERSION=0.99.0", "MAINTAINER=Somebody <somebody@example.com>"), ".deb")
	nextRPM := only(t, packed(t, next, "KINDS=rpm", "VERSION=99.0.0"), ".rpm")
	t.Run("again", func(t *testing.T) {
		other := filepath.Join(t.TempDir(), "other")
		in(t, "", "cp", "-r", next, other) // with other times
		wantSame(t, nextDeb, only(t, packed(t, other, "KINDS=deb", "VERSION=0.99.0", "MAINTAINER=Somebody <somebody@example.com>"), ".deb"))
		wantSame(t, nextRPM, only(t, packed(t, other, "KINDS=rpm", "VERSION=99.0.0"), ".rpm"))
	})
	t.Run("deb", func(t *testing.T) { installsDeb(t, dpkg, only(t, first, ".deb"), nextDeb) })
	t.Run("systemd", func(t *testing.T) {
		runsUnits(t, [2]string{only(t, first, ".deb"), nextDeb}, [2]string{only(t, first, ".rpm"), nextRPM})
	})
	t.Run("rpm", func(t *testing.T) {
		if needs := in(t, "", rpm, "-qp", "--requires", only(t, first, ".rpm")); !strings.Contains(needs, "glibc >= 2.") {
			t.Errorf("the package needs:\n%s", needs)
		}
		root := t.TempDir()
		manage := func(args ...string) {
			in(t, "", rpm, append([]string{"--root", root, "--dbpath", "/var/lib/rpm", "--nodeps", "--noscripts"}, args...)...)
		}
		manage("-i", only(t, first, ".rpm"))
		works(t, root)
		config := filepath.Join(root, "etc/impi/names.env")
		if err := os.WriteFile(config, []byte("PORT=7999\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		manage("-U", nextRPM)
		works(t, root)
		if b, err := os.ReadFile(config); err != nil || string(b) != "PORT=7999\n" {
			t.Errorf("after the upgrade %s has %q, %v", config, b, err)
		}
		if s := in(t, "", rpm, "--root", root, "--dbpath", "/var/lib/rpm", "-q", "impi"); !strings.Contains(s, "impi-99.0.0-") || strings.Count(s, "impi-") != 1 {
			t.Errorf("installed are %s", s)
		}
		manage("-e", "impi")
		if left := filesBelow(t, root); len(left) != 1 || left[0] != "/etc/impi/names.env.rpmsave" {
			t.Errorf("after removal %q are left", left)
		}
	})
}

// wantSame wants two files to be the same to the last byte.
func wantSame(t *testing.T, one, other string) {
	t.Helper()
	a, err1 := os.ReadFile(one)
	b, err2 := os.ReadFile(other)
	if err := errors.Join(err1, err2); err != nil || sha256.Sum256(a) != sha256.Sum256(b) {
		t.Errorf("%s is another one when it is made again (%v)", filepath.Base(one), err)
	}
}

// installsDeb installs a package below a folder, upgrades it to another one, and removes it.
func installsDeb(t *testing.T, dpkg, old, next string) {
	root := t.TempDir()
	for _, dir := range []string{"info", "updates"} {
		if err := os.MkdirAll(filepath.Join(root, "var/lib/dpkg", dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	config := filepath.Join(root, "etc/impi/names.env")
	if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	manage := func(args ...string) string {
		return in(t, "", dpkg, append([]string{"--root=" + root, "--force-not-root,depends,script-chrootless"}, args...)...)
	}
	manage("-i", old)
	works(t, root)
	if s := manage("-s", "impi"); !strings.Contains(s, "\nMaintainer: unnamed maintainer <root@localhost>\n") {
		t.Errorf("who made it has not said who maintains it:\n%s", s)
	}
	if err := os.WriteFile(config, []byte("PORT=7999\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	manage("-i", next)
	works(t, root)
	if b, err := os.ReadFile(filepath.Join(root, "usr/share/zsh/vendor-completions/_impi-node")); !strings.HasPrefix(string(b), "#compdef impi-node") {
		t.Errorf("Debian's zsh finds %.40q, %v", b, err)
	}
	if b, err := os.ReadFile(config); err != nil || string(b) != "PORT=7999\n" {
		t.Errorf("after the upgrade %s has %q, %v", config, b, err)
	}
	s := manage("-s", "impi")
	for _, want := range []string{"Version: 0.99.0", "Status: install ok installed", "Depends: libc6 (>= 2.", "Maintainer: Somebody <somebody@example.com>"} {
		if !strings.Contains(s, want) {
			t.Errorf("it lacks %q:\n%s", want, s)
		}
	}
	manage("-r", "impi")
	if left := filesBelow(t, root); len(left) != 1 || left[0] != "/etc/impi/names.env" {
		t.Errorf("after removal %q are left", left)
	}
	manage("-P", "impi")
	if left := filesBelow(t, root); len(left) > 0 {
		t.Errorf("after purging %q are left", left)
	}
}

// works compiles and runs a program with what is installed below a folder.
func works(t *testing.T, root string) {
	t.Helper()
	k := &Kit{Dir: filepath.Join(root, "opt/impi")}
	source, err := filepath.Abs("testdata/ring.c")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "ring")
	in(t, "", k.Command("impicc"), "-o", program, source)
	succeed(t, []string{k.Command("impiexec"), "-n", "4", program}, "ring")
	for _, name := range []string{"usr/lib/systemd/system/impi-names.service", "usr/lib/systemd/system/impi-server@.service",
		"usr/lib/sysusers.d/impi.conf", "usr/share/man/man1/impi-node.1", "usr/share/impi/grafana.json", "usr/share/doc/impi/impi-node.md", "etc/impi/names.env"} {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			t.Error(err)
		}
	}
	for _, program := range []string{"impi-node", "impi-server", "impi-bench", "impi-conform", "impi-sim", "impiexec", "impicc", "impicxx", "impifort"} {
		if to, err := os.Readlink(filepath.Join(root, "usr/bin", program)); err != nil || to != "/opt/impi/bin/"+program {
			t.Errorf("/usr/bin/%s leads to %q, %v", program, to, err)
		}
	}
	listsModules(t, filepath.Join(root, "usr/share/doc/impi/impi.cdx.json"), k.Command("impi-node"))
}

// listsModules wants a list of modules that has those of a program, and none that tests alone use.
func listsModules(t *testing.T, list, program string) {
	t.Helper()
	text, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	var bom struct {
		BOMFormat  string
		Metadata   struct{ Component struct{ Name string } }
		Components []struct{ Name, Version string }
	}
	if err := json.Unmarshal(text, &bom); err != nil || bom.BOMFormat != "CycloneDX" || bom.Metadata.Component.Name != "github.com/openimpi/impi" {
		t.Fatalf("%v: %.300s", err, text)
	}
	listed := make(map[string]string)
	for _, c := range bom.Components {
		listed[c.Name] = c.Version
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil || len(info.Deps) < 10 {
		t.Fatalf("%v, %v", info, err)
	}
	for _, m := range info.Deps {
		version, there := listed[m.Path]
		ours := m.Replace != nil // a module of this tree, which has the version of all of it
		if !there || version != m.Version && !ours {
			t.Errorf("%s %s is listed with version %q (%v)", m.Path, m.Version, version, there)
		}
	}
	if listed["std"] != info.GoVersion {
		t.Errorf("the standard library is listed as %q, not %q", listed["std"], info.GoVersion)
	}
	if v, there := listed["github.com/chromedp/chromedp"]; there {
		t.Errorf("chromedp %s is listed, which only tests use", v)
	}
}

// TestUnitsEnd: before a package is removed all units of it that run are stopped, and before an
// upgrade none. Only stop knows patterns: a server of a job is an instance, which nobody enables.
func TestUnitsEnd(t *testing.T) {
	script, err := os.ReadFile("../packaging/removed.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir() // instead of where systemd says that it runs
	text := filepath.Join(dir, "removed.sh")
	if err := os.WriteFile(text, []byte(strings.ReplaceAll(string(script), "/run/systemd/system", dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	called := filepath.Join(dir, "called")
	if err := os.WriteFile(filepath.Join(dir, "systemctl"), []byte("#!/bin/sh\necho \"$*\" >>"+called+"\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for how, want := range map[string]string{"upgrade": "", "1": "", "remove": "1", "0": "1"} {
		if err := os.WriteFile(called, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		in(t, "", "env", "PATH="+dir+":"+os.Getenv("PATH"), "sh", text, how)
		b, err := os.ReadFile(called)
		if err != nil {
			t.Fatal(err)
		}
		if want != "" {
			want = "stop impi-names.service impi-server@*.service\n--no-reload disable impi-names.service\n"
		}
		if string(b) != want {
			t.Errorf("%s: %q", how, b)
		}
	}
}

// TestUnits: systemd understands the units, and finds little that a stranger in them could do.
func TestUnits(t *testing.T) {
	analyze := skips.ProgramOf(t, "systemd-analyze", "systemd")
	units, err := filepath.Glob("../packaging/*.service")
	if err != nil || len(units) != 2 {
		t.Fatalf("%q, %v", units, err)
	}
	for _, u := range units {
		in(t, "", analyze, "security", "--offline=true", "--threshold=20", u)
		text, err := os.ReadFile(u)
		if err != nil {
			t.Fatal(err)
		}
		// Where it is installed the program is there.
		here := filepath.Join(t.TempDir(), filepath.Base(u))
		if err := os.WriteFile(here, []byte(strings.ReplaceAll(string(text), "/opt/impi/bin/impi-server", "/bin/true")), 0o600); err != nil {
			t.Fatal(err)
		}
		if out := in(t, "", analyze, "verify", "--man=no", here); strings.Contains(out, filepath.Base(u)) {
			t.Errorf("%s", out)
		}
	}
}
