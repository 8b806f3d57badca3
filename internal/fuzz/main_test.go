package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// bench is a runner whose targets take as long as costs says beyond their share.
func bench(costs ...time.Duration) (r *runner, out *strings.Builder, shares *[]time.Duration) {
	now := time.Unix(0, 0)
	out, shares = &strings.Builder{}, &[]time.Duration{}
	r = &runner{out: out, now: func() time.Time { return now }}
	r.fuzz = func(_ context.Context, t target, d time.Duration) report {
		now = now.Add(d + costs[len(*shares)])
		*shares = append(*shares, d)
		return report{target: t, summary: "fine"}
	}
	return r, out, shares
}

func targets(n int) (all []target) {
	for i := range n {
		all = append(all, target{pkg: "core/x", name: "Fuzz" + string(rune('A'+i))})
	}
	return all
}

func TestBudgetIsSharedEvenly(t *testing.T) {
	r, out, shares := bench(0, 0, 0, 0)
	r.budget = 40 * time.Second
	if code := r.run(t.Context(), targets(4)); code != 0 {
		t.Error(code)
	}
	if want := slices.Repeat([]time.Duration{10 * time.Second}, 4); !slices.Equal(*shares, want) {
		t.Errorf("shares %v", *shares)
	}
	for _, want := range []string{"[1/4] core/x.FuzzA for 10s, 40s left\n", "[4/4] core/x.FuzzD for 10s, 10s left\n", "4 targets in 40s, no failure\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
}

// What one target takes for its build is taken from all that follow, which have
// a second each in any case.
func TestSlowBuildsStayWithinTheBudget(t *testing.T) {
	r, _, shares := bench(10*time.Second, time.Hour, 0)
	r.budget = 30 * time.Second
	r.run(t.Context(), targets(3))
	if want := []time.Duration{10 * time.Second, 5 * time.Second, time.Second}; !slices.Equal(*shares, want) {
		t.Errorf("shares %v, want %v", *shares, want)
	}
}

func TestTimeForEach(t *testing.T) {
	r, out, shares := bench(time.Hour, 0)
	r.each, r.budget = 7*time.Second, time.Second
	r.run(t.Context(), targets(2))
	if want := []time.Duration{7 * time.Second, 7 * time.Second}; !slices.Equal(*shares, want) || !strings.Contains(out.String(), "14s left") {
		t.Errorf("shares %v\n%s", *shares, out)
	}
}

func TestFailuresAreNamedInTheEnd(t *testing.T) {
	r, out, _ := bench(0, 0, 0)
	good := r.fuzz
	r.fuzz = func(ctx context.Context, t target, d time.Duration) report {
		p := good(ctx, t, d)
		if t.name != "FuzzB" {
			return p
		}
		p.err = errors.New("exit status 1")
		p.output = "--- FAIL: FuzzB (0.03s)\n    Failing input written to testdata/fuzz/FuzzB/0123\n    To re-run:\n"
		return p
	}
	if code := r.run(t.Context(), targets(3)); code != 1 {
		t.Error(code)
	}
	if want := "1 of 3 targets failed in 3s:\n  core/x.FuzzB: core/x/testdata/fuzz/FuzzB/0123\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("%s", out)
	}
	if !strings.Contains(out.String(), "[3/3]") {
		t.Error("the others had no turn")
	}
}

func TestInterrupt(t *testing.T) {
	r, out, shares := bench(0, 0, 0)
	ctx, stop := context.WithCancel(t.Context())
	good := r.fuzz
	r.fuzz = func(ctx context.Context, t target, d time.Duration) report {
		stop()
		return good(ctx, t, d)
	}
	if code := r.run(ctx, targets(3)); code == 0 || len(*shares) != 1 || !strings.HasSuffix(out.String(), "interrupted\n") {
		t.Errorf("%d after %d targets: %s", code, len(*shares), out)
	}
}

func TestCrasher(t *testing.T) {
	for output, want := range map[string]string{
		"    Failing input written to testdata/fuzz/FuzzX/ab\n":            "core/x/testdata/fuzz/FuzzX/ab",
		"failure while testing seed corpus entry: FuzzX/cd\n--- FAIL:":     "core/x/testdata/fuzz/FuzzX/cd",
		"failure while testing seed corpus entry: FuzzX/seed#3\n--- FAIL:": "the seed that the target itself adds, FuzzX/seed#3",
		"x_test.go:3:1: syntax error":                                      "no input to blame: exit status 1",
	} {
		r := report{target: target{pkg: "core/x"}, output: output, err: errors.New("exit status 1")}
		if got := r.crasher(); got != want {
			t.Errorf("%q: %s, want %s", output, got, want)
		}
	}
}

func TestSummary(t *testing.T) {
	const out = "fuzz: elapsed: 0s, gathering baseline coverage: 0/3 completed\n" +
		"fuzz: elapsed: 3s, execs: 10 (3/sec), new interesting: 1 (total: 4)\n" +
		"fuzz: elapsed: 6s, execs: 24 (4/sec), new interesting: 2 (total: 5)\nPASS\n"
	if got := summary(out); got != "execs: 24, new interesting: 2" {
		t.Error(got)
	}
	if got := summary("PASS\n"); got != "no input was tried" {
		t.Error(got)
	}
	if got := withoutProgress(out + "--- FAIL\n\n"); got != "PASS\n--- FAIL" {
		t.Errorf("%q", got)
	}
}

// A module of its own, so that the list does not depend on ours.
func TestList(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":          "module example.org/m\n\ngo 1.26\n",
		"a/a.go":          "package a\n",
		"a/a_test.go":     "package a\n\nimport \"testing\"\n\nfunc FuzzOne(f *testing.F) {}\n\nfunc TestFuzz(t *testing.T) {}\n\nfunc FuzzNot(b []byte) {}\n",
		"a/out_test.go":   "package a_test\n\nimport \"testing\"\n\nfunc FuzzTwo(f *testing.F) {}\n",
		"b/none_test.go":  "package b\n",
		"a/testdata/x.go": "func FuzzThree(f *testing.F) {}\n",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	for only, want := range map[string]string{"": "a.FuzzOne a.FuzzTwo", "Two$": "a.FuzzTwo", "^b": ""} {
		all, err := list([]string{"./..."}, only)
		var names []string
		for _, f := range all {
			names = append(names, f.String())
		}
		if got := strings.Join(names, " "); err != nil || got != want {
			t.Errorf("%q: %q, %v", only, got, err)
		}
	}
	if _, err := list([]string{"./..."}, "("); err == nil {
		t.Error("a bad expression")
	}
	r, out, _ := bench()
	if code := r.main(t.Context(), "nothing", nil); code != 2 || !strings.Contains(out.String(), "no fuzz target") {
		t.Errorf("%d: %s", code, out)
	}
	if code := r.main(t.Context(), "", []string{"./missing"}); code != 2 {
		t.Errorf("%d: %s", code, out)
	}
}
