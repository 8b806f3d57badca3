package protocol

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/conformance/iut"
	"github.com/openimpi/impi/internal/conformance/play"
	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/internal/soak"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

// Our own implementation keeps every rule, SHOULDs included.
func TestOurs(t *testing.T) {
	skips.Short(t)
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", dir+"/", "../../../cmd/impi-node", "../../../cmd/impi-server", "../../../cmd/impi-conform")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, out)
	}
	s, err := iut.Impi(dir, []string{filepath.Join(dir, "impi-conform"), "interpreter"})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Parallel: 6, Patience: 30 * time.Second, Quick: true}
	if !soak.Enabled() {
		o.Level = play.Must // the other cases are for make soak
	}
	r, err := Run(context.Background(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range r.Results {
		if x.Verdict != transporttest.Pass {
			t.Errorf("%s: %s\nexpected: %s\n%s", x.ID, x.Reason, x.Expect, strings.Join(x.Trace, "\n"))
		}
	}
	t.Logf("%d cases in %.1f s", r.Passed, r.Seconds)
}

// The catalogue is complete: numbers are unique, everything is said.
func TestCatalogue(t *testing.T) {
	form := regexp.MustCompile(`^IMPI-[2-4]-[A-Z]+-\d\d$`)
	seen := map[string]bool{}
	for _, c := range play.Cases() {
		switch {
		case seen[c.ID], !form.MatchString(c.ID):
			t.Errorf("%s: its number is taken or has another form", c.ID)
		case c.Level != play.Must && c.Level != play.Should:
			t.Errorf("%s: level %q", c.ID, c.Level)
		case c.Needs != iut.Client && c.Needs != iut.Server && c.Needs != iut.Program:
			t.Errorf("%s: needs %q", c.ID, c.Needs)
		case c.Expect == "" || c.Reference == "" || c.Run == nil:
			t.Errorf("%s: it does not say what it expects", c.ID)
		case !slices.Contains(play.Chapters, c.Chapter):
			t.Errorf("%s: there is no chapter %q", c.ID, c.Chapter)
		}
		seen[c.ID] = true
	}
	for _, chapter := range play.Chapters {
		o := Options{Run: regexp.MustCompile("^" + chapter + "$")}
		if len(o.Chosen()) == 0 {
			t.Errorf("chapter %q has no cases", chapter)
		}
	}
}

func TestChosen(t *testing.T) {
	count := func(o Options) int { return len(o.Chosen()) }
	all := count(Options{})
	if must, should := count(Options{Level: play.Must}), count(Options{Level: play.Should}); must == 0 || should == 0 || must+should != all {
		t.Errorf("%d MUST and %d SHOULD of %d", must, should, all)
	}
	if n := count(Options{Quick: true}); n == 0 || n >= all {
		t.Errorf("%d of %d are quick", n, all)
	}
	if n := count(Options{Run: regexp.MustCompile("IMPI-2-AUTH-01")}); n != 1 {
		t.Errorf("one number chooses %d cases", n)
	}
	if _, err := Run(context.Background(), &iut.Commands{}, Options{Run: regexp.MustCompile("zebra")}); !errors.Is(err, ErrNothing) {
		t.Errorf("a pattern that fits nothing: %v", err)
	}
}

// judged runs cases against commands of the shell.
func judged(t *testing.T, s *iut.Commands, pattern string) *Report {
	t.Helper()
	r, err := Run(context.Background(), s, Options{Run: regexp.MustCompile(pattern), Patience: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// An implementation that does nothing, or something else altogether, fails, and the
// report says what was expected and what it did instead.
func TestNoImplementation(t *testing.T) {
	for _, c := range []struct{ client, server, reason string }{
		{"exit 7", "exit 7", "no connection came|ended .* before it printed|has not printed"},
		{"exec sleep 1000", "exec sleep 1000", "no connection came|has not printed"},
		{"echo hello from {rank}; exit 3", "echo hello", "no connection came|not address:port|has not printed"},
	} {
		r := judged(t, &iut.Commands{Title: "none", Release: "0", ClientCommand: c.client, ServerCommand: c.server, Program: "/bin/true"}, "AUTH-(01|11)")
		if r.Verdict != transporttest.Fail || r.Failed != 2 || r.Musts != 2 {
			t.Fatalf("%s: %+v", c.client, r)
		}
		for _, x := range r.Results {
			if !regexp.MustCompile(c.reason).MatchString(x.Reason) || len(x.Trace) == 0 {
				t.Errorf("%s: %s: %q, trace %q", c.client, x.ID, x.Reason, x.Trace)
			}
		}
		forms(t, r)
	}
}

// forms reads the report in all its forms.
func forms(t *testing.T, r *Report) {
	t.Helper()
	var table, junit, object, page bytes.Buffer
	r.WriteSummary(&table)
	r.WriteMarkdown(&page, "impi-conform protocol -x")
	if err := errors.Join(r.WriteJUnit(&junit), r.WriteJSON(&object)); err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(object.Bytes(), &back); err != nil || len(back.Results) != len(r.Results) || back.Musts != r.Musts {
		t.Errorf("%v: %s", err, &object)
	}
	for _, x := range r.Results {
		for _, words := range []string{x.ID, x.Expect, x.Reason, "  | "} {
			if !strings.Contains(table.String(), words) {
				t.Errorf("%q is not in the table:\n%s", words, &table)
			}
		}
		if row := "| " + x.ID + " | MUST | FAIL | "; !strings.Contains(page.String(), row) || !strings.Contains(page.String(), "`impi-conform protocol -x`") {
			t.Errorf("%q is not in\n%s", row, &page)
		}
		if !strings.Contains(junit.String(), `name="`+x.ID) || !strings.Contains(junit.String(), "<system-out>") {
			t.Errorf("%s is not in\n%s", x.ID, &junit)
		}
	}
}

// What an implementation has not is skipped, and a run in which nothing passes is no
// success.
func TestNothingToJudge(t *testing.T) {
	r := judged(t, &iut.Commands{Title: "server", ServerCommand: "exit 1"}, "AUTH-01")
	if r.Skipped != 1 || r.Verdict != transporttest.Fail || !strings.Contains(r.Results[0].Reason, "-client") {
		t.Errorf("%+v", r)
	}
}

// A violated SHOULD is told and is no failure of the whole.
func TestShouldIsNoFailure(t *testing.T) {
	r := &Report{Results: []Result{
		{ID: "a", Level: play.Must, Verdict: transporttest.Pass}, {ID: "b", Level: play.Should, Verdict: transporttest.Fail, Reason: "it did not"},
	}}
	if r.count(); r.Verdict != transporttest.Pass || r.Failed != 1 || r.Musts != 0 {
		t.Errorf("%+v", r)
	}
	r.Results[0].Verdict = transporttest.Fail
	if r.count(); r.Verdict != transporttest.Fail || r.Musts != 1 {
		t.Errorf("%+v", r)
	}
}

// Daemons that have left their process group end with the case.
func TestNothingIsLeft(t *testing.T) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		skips.NotRun(t, "what daemons leave is found by /proc, and there is none", "mount /proc")
	}
	skips.Program(t, "setsid")
	file := filepath.Join(t.TempDir(), "pid")
	judged(t, &iut.Commands{ClientCommand: "setsid sh -c 'echo $$ > " + file + "; exec sleep 1000' & sleep 1000"}, "AUTH-01")
	pid, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat")
	if err == nil && !strings.Contains(string(stat), ") Z") {
		t.Errorf("it still runs: %s", stat)
	}
}
