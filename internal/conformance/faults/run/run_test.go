package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"
)

// quick are faults of each kind: what is sent, what is done with what comes, what
// hangs, what crashes, and what the server does.
const quick = "^(window-too-wide|syncack-before-match|ack-of-one|stray-syncack-fatal|bcast-root|label-pid|answer-in-reverse)$"

// TestQuick does with a few faults what make conform-mutants does with all.
func TestQuick(t *testing.T) {
	if testing.Short() {
		t.Skip("NOT RUN: it builds three programs with faults, and -short is given")
	}
	var report bytes.Buffer
	tool := tool{report: &report, patience: 4 * time.Second, workers: 2}
	done, err := tool.prepare(t.Context(), regexp.MustCompile(quick))
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	if want := strings.Count(quick, "|") + 1; len(tool.chosen) != want {
		t.Errorf("%d of %d faults are in the list", len(tool.chosen), want)
	}
	if err := tool.baseline(t.Context()); err != nil {
		t.Fatal(err)
	}
	if missed := tool.all(t.Context()); len(missed) > 0 {
		t.Errorf("%s\n%s", strings.Join(missed, "\n"), report.String())
	}
	if n := strings.Count(report.String(), ": noticed by "); n != len(tool.chosen) {
		t.Errorf("%d of %d faults are noticed:\n%s", n, len(tool.chosen), report.String())
	}
}

// A fault that the case named for it cannot see is told, with the case.
func TestNotNoticed(t *testing.T) {
	if testing.Short() {
		t.Skip("NOT RUN: it builds three programs with faults, and -short is given")
	}
	var report bytes.Buffer
	tool := tool{report: &report, patience: 4 * time.Second, workers: 1}
	done, err := tool.prepare(t.Context(), regexp.MustCompile("^cancel-oldest$"))
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	tool.faults[tool.chosen[0]].Cases = []string{"IMPI-3-SHORT-01", "IMPI-3-CANCEL-05"}
	missed := tool.all(t.Context())
	if len(missed) != 1 || missed[0] != "cancel-oldest: NOT NOTICED by IMPI-3-SHORT-01" {
		t.Errorf("%q", missed)
	}
}

func TestFlags(t *testing.T) {
	for _, args := range [][]string{{"-j", "0"}, {"more"}, {"-no-such"}, {"-only", "("}} {
		var out, report bytes.Buffer
		if got := run(t.Context(), args, &out, &report); got != exitUsage || report.Len() == 0 {
			t.Errorf("%v: status %d, %q", args, got, report.String())
		}
	}
	var out, report bytes.Buffer
	if got := run(t.Context(), []string{"-only", "^no such$"}, &out, &report); got != exitSurvived || report.Len() == 0 {
		t.Errorf("status %d, %q", got, report.String())
	}
}
