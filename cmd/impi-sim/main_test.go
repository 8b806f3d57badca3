package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/sim"
)

// do runs the command.
func do(t *testing.T, args ...string) (status int, out, report string) {
	t.Helper()
	var o, r bytes.Buffer
	status = run(t.Context(), args, &o, &r)
	return status, o.String(), r.String()
}

func TestOneSeed(t *testing.T) {
	status, out, report := do(t, "-seed", "4")
	if status != exitOK || out != "" || !strings.Contains(report, "1 seeds in ") || !strings.Contains(report, "0 failed, digest ") {
		t.Errorf("%d\n%s\n%s", status, out, report)
	}
	if _, _, again := do(t, "-seed", "4", "-trace", "5"); strings.Count(again, "\n") != 6 || digest(again) != digest(report) {
		t.Errorf("with a trace:\n%s", again)
	}
}

func digest(report string) string {
	_, d, _ := strings.Cut(report, "digest ")
	return d
}

// TestPrintedCaseIsTheSeed: -print gives what -case takes.
func TestPrintedCaseIsTheSeed(t *testing.T) {
	_, text, _ := do(t, "-seed", "5", "-procs", "6", "-print")
	file := filepath.Join(t.TempDir(), "case.txt")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, bySeed := do(t, "-seed", "5", "-procs", "6")
	status, _, byCase := do(t, "-case", file)
	if status != exitOK || digest(bySeed) == "" || digest(bySeed) != digest(byCase) {
		t.Errorf("%d\n%s\n%s", status, bySeed, byCase)
	}
}

func TestManySeeds(t *testing.T) {
	status, out, report := do(t, "-seeds", "10:30", "-j", "2", "-json", "-coverage")
	var s summary
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		t.Fatal(err)
	}
	if status != exitOK || s.Seeds != 20 || s.Repeated != 1 || len(s.Failed) != 0 || s.Events == 0 || s.Coverage["jobs"] != 20 {
		t.Errorf("%d, %+v", status, s)
	}
	if !strings.Contains(report, "per 1000 jobs:\n  jobs: ended in order ") {
		t.Errorf("%s", report)
	}
}

// TestWorlds runs seeds of jobs that meet.
func TestWorlds(t *testing.T) {
	status, _, report := do(t, "-worlds", "-seeds", "0:20", "-coverage")
	if status != exitOK || !strings.Contains(report, "20 seeds in ") || !strings.Contains(report, " meet ") {
		t.Errorf("%d\n%s", status, report)
	}
	_, text, _ := do(t, "-worlds", "-seed", "5", "-print")
	status, _, report = do(t, "-worlds", "-seed", "5", "-trace", "9")
	if status != exitOK || !strings.Contains(text, "seed 5") || strings.Count(report, "\n") != 10 {
		t.Errorf("%d\n%s\n%s", status, text, report)
	}
}

// TestSurvive runs seeds of jobs that go on without lost procs, and prints one that can be run
// again.
func TestSurvive(t *testing.T) {
	status, _, report := do(t, "-survive", "-seeds", "0:20")
	if status != exitOK || !strings.Contains(report, "20 seeds in ") {
		t.Errorf("%d\n%s", status, report)
	}
	_, text, _ := do(t, "-survive", "-seed", "5", "-print")
	if again := (&options{limits: sim.Limits{Survive: true}}).again(5); !strings.Contains(text, "\nrecover ") || again != "impi-sim -survive -seed 5" {
		t.Errorf("%q\n%s", again, text)
	}
}

func TestTimeIsABound(t *testing.T) {
	if status, _, report := do(t, "-seeds", "0:", "-time", "50ms"); status != exitOK {
		t.Errorf("%d\n%s", status, report)
	}
}

// failing is a verdict that the seed does not have.
func failing(t *testing.T, trace int) (*sim.Case, *sim.Verdict) {
	t.Helper()
	c := sim.Generate(1, sim.Limits{Procs: 2, Steps: 3, NoFaults: true})
	v := sim.Run(c, sim.Options{Trace: trace})
	v.Failure = &sim.Failure{Oracle: "order", Err: os.ErrClosed}
	return c, v
}

func TestFailureIsExplained(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	o := &options{trace: 3, shrink: true, shrinkTime: time.Millisecond, out: dir, limits: sim.Limits{Procs: 2, Steps: 3, NoFaults: true}}
	c, v := failing(t, 3)
	var w bytes.Buffer
	o.explain(c, v, o.again(1), &w)
	path := filepath.Join(dir, "seed-1.txt")
	for _, want := range []string{
		"\nFAIL seed 1: order: file already closed\n", "the last events", "again: impi-sim -seed 1 -procs 2 -steps 3 -no-faults\n",
		"this one fails in the same way", "again: impi-sim -case " + path + "\n",
	} {
		if !strings.Contains(w.String(), want) {
			t.Errorf("no %q in\n%s", want, w.String())
		}
	}
	text, err := os.ReadFile(path)
	if err != nil || string(text) != c.String() {
		t.Errorf("%v\n%s", err, text)
	}
	c.Sites = nil // which is no case at all any more
	if path, err = o.keep(2, c, sim.Run(c, sim.Options{}).Failure); err == nil {
		text, err = os.ReadFile(path)
	}
	if err != nil || !strings.HasPrefix(string(text), "# case: sim: not a case: it has 0 sites\n") {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestFailureIsTheExitStatus(t *testing.T) {
	c, v := failing(t, 0)
	o := &options{json: true}
	var out, report bytes.Buffer
	status := o.end(sim.Tally{Seeds: 1, Findings: []sim.Finding{{Seed: c.Seed, Failure: v.Failure}}}, "", &out, &report)
	var s summary
	if err := json.Unmarshal(out.Bytes(), &s); err != nil || status != exitFailed || len(s.Failed) != 1 || s.Failed[0].Oracle != "order" {
		t.Errorf("%v, %d, %+v", err, status, s)
	}
}

func TestWrongUsage(t *testing.T) {
	for _, args := range [][]string{
		{}, {"-seed", "x"}, {"-seed", "1", "-seeds", "1:2"}, {"-seeds", "5"}, {"-seeds", "5:5"}, {"-seeds", "7:5"}, {"-seeds", "5:"},
		{"-seed", "1", "extra"}, {"-what"}, {"-seed", "1", "-procs", "0"}, {"-seed", "1", "-steps", "0"}, {"-seed", "1", "-j", "0"},
		{"-seed", "1", "-time", "-1s"}, {"-seed", "1", "-trace", "-1"}, {"-worlds", "-scale", "1:2"}, {"-survive", "-worlds", "-seed", "1"}, {"-survive", "-scale", "1:2"}, {"-seeds", "1:5", "-print"}, {"-case", "nowhere.txt"},
	} {
		status, out, report := do(t, args...)
		line, rest, _ := strings.Cut(report, "\n")
		if status != exitUsage || out != "" || !strings.HasPrefix(line, "impi-sim: ") || rest != "" && rest != "Try: impi-sim help\n" {
			t.Errorf("%q: %d, %q", args, status, report)
		}
	}
	file := filepath.Join(t.TempDir(), "case.txt")
	if err := os.WriteFile(file, []byte("seed 1\nprocs 1\nnonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _, report := do(t, "-case", file); status != exitUsage || !strings.Contains(report, "line 3") {
		t.Errorf("%d, %q", status, report)
	}
}

// TestHelpHasAllFlags: and no others.
func TestHelpHasAllFlags(t *testing.T) {
	status, out, _ := do(t, "-help")
	if status != exitOK || out != help {
		t.Errorf("%d", status)
	}
	c, _ := newCommand()
	for _, fault := range c.Faults() {
		t.Error(fault)
	}
}

func TestProgress(t *testing.T) {
	var w bytes.Buffer
	if newProgress(&options{}, &w) != nil {
		t.Error("progress that nobody wants")
	}
	p := newProgress(&options{progress: true, count: 10}, &w)
	p.show(sim.Tally{Seeds: 5, Events: 1_500_000, Took: time.Second, Time: time.Minute})
	p.clear()
	if got, want := w.String(), " 50% 5 seeds in 1s (5/s), 1.5 M events (1.50 M/s), 1m0s of virtual time\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	w.Reset()
	p.terminal = true
	p.show(sim.Tally{Findings: make([]sim.Finding, 2)})
	p.clear()
	if got := w.String(); !strings.HasPrefix(got, "\r  0% ") || !strings.Contains(got, ", 2 failed") || !strings.HasSuffix(got, "\r\x1b[K") {
		t.Errorf("on a terminal: %q", got)
	}
}

func TestScale(t *testing.T) {
	status, out, _ := do(t, "-scale", "4:64")
	for _, want := range []string{"4 clients, 64 procs", "barrier", "allreduce 8 B"} {
		if status != exitOK || !strings.Contains(out, want) {
			t.Errorf("%d: no %q in:\n%s", status, want, out)
		}
	}
	status, out, _ = do(t, "-scale", "2:40x4")
	for _, want := range []string{"2 sites, 4 procs on each host", "\n      1 ", "\n     32 ", "\n     40 "} {
		if status != exitOK || !strings.Contains(out, want) {
			t.Errorf("%d: no %q in:\n%s", status, want, out)
		}
	}
	if status, out, _ = do(t, "-scale", "2:3x4", "-json"); status != exitOK || strings.Count(out, `"head_bytes_in"`) != 2 {
		t.Errorf("%d: %s", status, out)
	}
	for _, wrong := range []string{"4:1024x", "4:0x1", "33:1x1", "4:1024x1024"} {
		if status, _, report := do(t, "-scale", wrong); status != exitUsage || !strings.Contains(report, "CLIENTS:HOSTSxPROCS") {
			t.Errorf("%q: %d, %q", wrong, status, report)
		}
	}
	for _, wrong := range []string{"4", "0:4", "33:100", "4:3", "4:x"} {
		if status, _, report := do(t, "-scale", wrong); status != exitUsage || !strings.Contains(report, "CLIENTS:PROCS") {
			t.Errorf("%q: %d, %q", wrong, status, report)
		}
	}
}
