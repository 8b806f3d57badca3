package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/conformance/faults"
	"github.com/openimpi/impi/internal/mutant"
	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/internal/soak"
)

// quick are faults of each kind: what is sent, what is done with what comes, what
// hangs, what crashes, and what the server does.
const quick = "^(window-too-wide|syncack-before-match|ack-of-one|stray-syncack-fatal|bcast-root|label-pid|answer-in-reverse)$"

// run tries faults, and gives the exit status and what was printed.
func run(t *testing.T, all []faults.Fault, args ...string) (status int, out, report string) {
	t.Helper()
	var o, r bytes.Buffer
	status = newJudge(all).command.Run(t.Context(), args, &o, &r)
	return status, o.String(), r.String()
}

func load(t *testing.T) []faults.Fault {
	t.Helper()
	all, err := faults.All()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestQuick does with a few faults what make conform-mutants does with all.
func TestQuick(t *testing.T) {
	skips.Short(t)
	soak.SkipUnlessSoak(t, "the product is built for each fault")
	status, out, report := run(t, load(t), "-only", quick, "-j", "2")
	want := strings.Count(quick, "|") + 1
	if n := strings.Count(report, ": noticed by "); status != mutant.Caught || n != want {
		t.Errorf("status %d, %d of %d faults are noticed:\n%s%s", status, n, want, report, out)
	}
}

// A fault that the case named for it cannot see is told, with the case.
func TestNotNoticed(t *testing.T) {
	skips.Short(t)
	soak.SkipUnlessSoak(t, "the product is built for each fault")
	all := load(t)
	i := slices.IndexFunc(all, func(f faults.Fault) bool { return f.Name == "cancel-oldest" })
	all[i].Cases = []string{"IMPI-3-SHORT-01", "IMPI-3-CANCEL-05"}
	status, out, report := run(t, all, "-only", "^cancel-oldest$")
	want := "cancel-oldest: NOT NOTICED by IMPI-3-SHORT-01\n0 of 1 faults are noticed"
	if status != mutant.Survived || !strings.HasPrefix(out, want) {
		t.Errorf("status %d:\n%s%s", status, report, out)
	}
}
