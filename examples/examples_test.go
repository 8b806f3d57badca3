package examples

import (
	"bytes"
	"context"
	"fmt"
	"image/png"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// programs are the examples.
var programs = append([]string{"elastic", "heat2d", "manager-worker", "pi", "ring", "survivor", "tasks", "wordcount"}, slices.Sorted(maps.Keys(chapter))...)

// checkout is a folder like the top of the repository after make build: bin/
// with impi-node and the examples, and the job files where they belong.
var checkout string

func TestMain(m *testing.M) {
	code := 1
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
	}
	_ = os.RemoveAll(checkout)
	os.Exit(code)
}

func prepare() (err error) {
	if checkout, err = os.MkdirTemp("", "impi-examples-"); err != nil {
		return err
	}
	args := []string{"build", "-o", filepath.Join(checkout, "bin") + "/", "../cmd/impi-node"}
	for _, p := range programs {
		args = append(args, "./"+p)
		jobs, err := filepath.Glob(filepath.Join(p, "*.hcl"))
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(checkout, "examples", p), 0o755); err != nil {
			return err
		}
		for _, name := range jobs {
			job, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(checkout, "examples", name), job, 0o600); err != nil {
				return err
			}
		}
	}
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// hung is when a job that does not end is killed: a test fails then, it does not
// measure.
const hung = 4 * time.Minute

// node runs impi-node in the checkout and gives what it prints.
func node(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	return nodeReads(t, nil, args...)
}

// nodeReads is node with a standard input.
func nodeReads(t *testing.T, stdin io.Reader, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hung)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(checkout, "bin", "impi-node"), args...)
	cmd.Dir = checkout
	var out, problems bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &problems
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("impi-node %s does not end\n%s%s", strings.Join(args, " "), out.String(), problems.String())
	}
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), problems.String(), cmd.ProcessState.ExitCode()
}

// succeed runs a job that must.
func succeed(t *testing.T, args ...string) (stdout string) {
	t.Helper()
	stdout, stderr, status := node(t, args...)
	if status != 0 {
		t.Fatalf("impi-node %s: exit status %d\n%s%s", strings.Join(args, " "), status, stdout, stderr)
	}
	return stdout
}

// runJob runs an example by its job file, exactly as it stands.
func runJob(t *testing.T, name string) string {
	t.Helper()
	return succeed(t, "-config", filepath.Join("examples", name, "job.hcl"))
}

// printed wants lines of rank 0, in this order; other lines may be between.
func printed(t *testing.T, out string, patterns ...string) {
	t.Helper()
	rest := out
	for _, p := range patterns {
		at := regexp.MustCompile(`(?m)^\[0\] ` + p + `$`).FindStringIndex(rest)
		if at == nil {
			t.Fatalf("no line %q after those before it in\n%s", p, out)
		}
		rest = rest[at[1]:]
	}
}

func TestRing(t *testing.T) {
	printed(t, runJob(t, "ring"),
		`ring: 4 ranks, 1000 rounds: 4000 hops, path [0-9a-f]{16}, as it must be`,
		`ring: [0-9]+\.[0-9]{2} us per hop`)
}

func TestRingAlone(t *testing.T) {
	printed(t, succeed(t, "-n", "1", "--", "bin/ring", "-rounds", "10"), `ring: 1 ranks, 10 rounds: 10 hops, .*`)
}

func TestPi(t *testing.T) {
	printed(t, runJob(t, "pi"),
		`pi: 20000000 intervals on 4 ranks: 3\.14159265358979[0-9]`,
		`pi: the error is .*, its bound .*`)
}

// All ranks fail together, and the job says why.
func TestPiRefuses(t *testing.T) {
	out, problems, status := node(t, "-n", "2", "--", "bin/pi", "-intervals", "0")
	if status == 0 || !strings.Contains(problems, "at least one is needed") {
		t.Errorf("exit status %d\n%s%s", status, out, problems)
	}
}

func TestWordcount(t *testing.T) {
	out := runJob(t, "wordcount")
	printed(t, out,
		`wordcount: 1544047 bytes on 4 ranks: 266975 words, 7886 different, 4\.50 letters long`,
		`wordcount:  1\. the          21973`,
		`wordcount:  2\. of           8868`,
		`wordcount: 10\. this         2244`,
		`wordcount: letters by frequency: etaonisrhlcdufmpwgybvkxqjz`,
		`wordcount: equal to a sequential count`)
	if n := strings.Count(out, ". "); n != 10 {
		t.Errorf("%d words in the list", n)
	}
}

// The parts of most ranks can be empty.
func TestWordcountOfLittle(t *testing.T) {
	for text, want := range map[string]string{
		"":                  `wordcount: 0 bytes on 5 ranks: 0 words, 0 different, 0\.00 letters long`,
		"one":               `wordcount: 3 bytes on 5 ranks: 1 words, 1 different, 3\.00 letters long`,
		"to be, or not to ": `wordcount: 17 bytes on 5 ranks: 5 words, 4 different, 2\.20 letters long`,
	} {
		file := filepath.Join(t.TempDir(), "little.txt")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		printed(t, succeed(t, "-n", "5", "--", "bin/wordcount", "-text", file), want, `wordcount: equal to a sequential count`)
	}
}

func TestHeat2d(t *testing.T) {
	out := runJob(t, "heat2d")
	printed(t, out,
		`heat2d: 512 x 384 cells on 2 x 2 ranks, at most 5000 steps`,
		`heat2d: step  500 of 5000   10 %  change .*`,
		`heat2d: step 5000 of 5000  100 %  change .*`,
		`heat2d: 5000 steps in .*`,
		`heat2d: one process computes the same, bit for bit`,
		`heat2d: the picture is `+regexp.QuoteMeta(filepath.Join(checkout, "out", "heat2d-final.png")))
	if n := strings.Count(out, " % "); n != 10 {
		t.Errorf("%d lines of progress", n)
	}
	for _, name := range []string{"heat2d-initial.png", "heat2d-final.png"} {
		f, err := os.Open(filepath.Join(checkout, "out", name))
		if err != nil {
			t.Fatal(err)
		}
		img, err := png.DecodeConfig(f)
		if err != nil || img.Width != 1024 || img.Height != 768 {
			t.Errorf("%s: %d x %d pixels, %v", name, img.Width, img.Height, err)
		}
		_ = f.Close()
	}
}

// pictures runs heat2d for a while, as job says, and gives its files and the
// field's digest.
func pictures(t *testing.T, job func(t *testing.T, args ...string) []string) (files map[string][]byte, digest string) {
	t.Helper()
	dir := t.TempDir()
	out := succeed(t, job(t, "-steps", "300", "-check", "30", "-frames", "2", "-out", dir)...)
	m := regexp.MustCompile(`field sha256 ([0-9a-f]{64})\n`).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("no digest in\n%s", out)
	}
	files = map[string][]byte{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files, m[1]
}

// ranks is a job of n procs on one site.
func ranks(n string) func(*testing.T, ...string) []string {
	return func(_ *testing.T, args ...string) []string {
		return append([]string{"-n", n, "--", "bin/heat2d"}, args...)
	}
}

// twoSites is the job of the job file, with other arguments.
func twoSites(t *testing.T, args ...string) []string {
	t.Helper()
	path := filepath.Join(checkout, "examples", "heat2d", "job.hcl")
	job, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const verify = `"-verify"`
	if !bytes.Contains(job, []byte(verify)) {
		t.Fatalf("no %s in\n%s", verify, job)
	}
	list := strings.TrimSuffix(fmt.Sprintf("%q", args), "]")[1:]
	job = bytes.Replace(job, []byte(verify), []byte(strings.ReplaceAll(list, `" "`, `", "`)), 1)
	path = strings.Replace(path, "job.hcl", "other.hcl", 1)
	if err := os.WriteFile(path, job, 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"-config", path}
}

// All files are the same, byte for byte, on one rank, on several, and on two
// sites.
func TestHeat2dAnywhereTheSame(t *testing.T) {
	want, digest := pictures(t, ranks("1"))
	if len(want) != 4 {
		t.Fatalf("%d pictures, want the initial one, two frames and the final one", len(want))
	}
	for name, job := range map[string]func(*testing.T, ...string) []string{
		"3 ranks": ranks("3"), "6 ranks": ranks("6"), "2 sites of 2": twoSites,
	} {
		got, d := pictures(t, job)
		if d != digest {
			t.Errorf("%s: field %s, want %s", name, d, digest)
		}
		for file, data := range want {
			if !bytes.Equal(got[file], data) {
				t.Errorf("%s: %s differs (%d bytes, want %d)", name, file, len(got[file]), len(data))
			}
		}
	}
}

func TestHeat2dRefuses(t *testing.T) {
	for problem, args := range map[string][]string{
		"no such file":     {"-image", "missing.png"},
		"unusable picture": {"-image", "examples/ring/job.hcl"},
		"-scale 99":        {"-scale", "99"},
	} {
		out, problems, status := node(t, append([]string{"-n", "2", "--", "bin/heat2d", "-out", t.TempDir()}, args...)...)
		if status == 0 || !strings.Contains(problems, problem) {
			t.Errorf("%s: exit status %d\n%s%s", problem, status, out, problems)
		}
	}
}
