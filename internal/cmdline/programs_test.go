package cmdline_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// build makes all programs of the repository.
func build(t *testing.T) (bin string, programs []string) {
	t.Helper()
	found, err := filepath.Glob("../../cmd/impi*")
	if err != nil || len(found) < 14 {
		t.Fatalf("%d programs, %v", len(found), err)
	}
	bin = t.TempDir()
	args := []string{"build", "-ldflags=-w", "-o", bin + "/"}
	for _, dir := range found {
		args = append(args, "./cmd/"+filepath.Base(dir))
		programs = append(programs, filepath.Base(dir))
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin, programs
}

// Every program says what it is to who asks, in each of the ways in which people ask:
// on the standard output, with status 0 and an example.
func TestProgramsSayWhatTheyAre(t *testing.T) {
	bin, programs := build(t)
	empty := t.TempDir()
	ask := func(program string, args ...string) (status int, out, errs string) {
		var o, e bytes.Buffer
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, program), args...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = empty, &o, &e
		cmd.Env = append(os.Environ(), "PATH="+os.Getenv("PATH"))
		_ = cmd.Run() // the status says it
		return cmd.ProcessState.ExitCode(), o.String(), e.String()
	}
	for _, p := range programs {
		for _, word := range []string{"-h", "-help", "--help", "help"} {
			status, out, errs := ask(p, word)
			if status != 0 || errs != "" || !strings.Contains(out, p) || !strings.Contains(strings.ToLower(out), "example") {
				t.Errorf("%s %s: status %d\n%s%s", p, word, status, out, errs)
			}
		}
		for _, word := range []string{"-version", "--version", "version"} {
			status, out, errs := ask(p, word)
			if status != 0 || errs != "" || !strings.Contains("\n"+out, "\n"+p+" ") || !strings.ContainsAny(out, "0123456789") {
				t.Errorf("%s %s: status %d\n%s%s", p, word, status, out, errs)
			}
		}
	}
	for _, verb := range []string{"abi", "cert", "links", "plugins", "validate", "version"} {
		if status, out, errs := ask("impi-node", verb, "-h"); status != 0 || errs != "" || !strings.Contains(out, "impi-node "+verb) {
			t.Errorf("impi-node %s -h: status %d\n%s%s", verb, status, out, errs)
		}
	}
	for _, args := range [][]string{{"impi-node", "cert", "init"}, {"impi-node", "plugins", "list"}, {"impi-conform", "transport"}, {"impi-conform", "protocol"}, {"impi-bench", "startup"}} {
		if status, out, errs := ask(args[0], append(args[1:], "-h")...); status != 0 || errs != "" || !strings.Contains(strings.ToLower(out), "example") {
			t.Errorf("%s -h: status %d\n%s%s", args, status, out, errs)
		}
	}
	checkPages(t, ask)
}

// checkPages wants the man page of each program and command to be complete, and no wider than a
// screen.
func checkPages(t *testing.T, ask func(string, ...string) (int, string, string)) {
	t.Helper()
	share := t.TempDir()
	for _, p := range []string{"impi-node", "impi-server", "impi-bench", "impi-conform", "impi-sim", "impiexec"} {
		if status, _, errs := ask(p, "completion", "install", share); status != 0 {
			t.Errorf("%s: status %d: %s", p, status, errs)
		}
	}
	pages, err := filepath.Glob(filepath.Join(share, "man/man1/*.1"))
	if err != nil || len(pages) < 20 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	const most = 100
	for _, page := range pages {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.NewReplacer(`\-`, "-", `\(aq`, "'").Replace(string(b))
		for _, want := range []string{"\n.SH NAME\n", "\n.SH EXAMPLES", "xit status"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s has no %q", filepath.Base(page), want)
			}
		}
		listed := text
		if filepath.Base(page) == "impi-node.1" { // it lists the commands, which have pages of their own
			listed = ""
		}
		for _, flag := range regexp.MustCompile(`\[(-[a-z-]+)`).FindAllStringSubmatch(listed, -1) {
			if !regexp.MustCompile(`(?m)^  ` + flag[1] + `\b`).MatchString(text) {
				t.Errorf("%s has no text for %s", filepath.Base(page), flag[1])
			}
		}
		_, text, _ = strings.Cut(text, ".SH DESCRIPTION")
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > most {
				t.Errorf("%s: %d columns: %s", filepath.Base(page), n, line)
			}
		}
	}
}
