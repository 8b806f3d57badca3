package matrix

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/provenance"
)

// What is read from a page makes the same table.
func TestReadTable(t *testing.T) {
	stamps := []provenance.Stamp{{Day: "2026-01-02", Commit: "0123456789ab"}, {Day: "2026-01-03", Commit: "abcdef012345"}}
	var all []Result
	for i, c := range []Cell{
		{"tcp", "fd", Direct, "ring", NoFault}, {"tcp", "fd", Direct, "large", NoFault}, {"tcp", "fd", DirectMachines, "ring", LinkCut},
		{"c", "fd", Direct, "ring", NoFault}, {"c", "fd", Direct, "large", NoFault},
	} {
		r := Result{Cell: c, Verdict: OK, Made: stamps[i%2]}
		switch i {
		case 1:
			r.Verdict, r.Reason = Failed, "it broke"
		case 2:
			r.Verdict, r.Reason = Ended, "it must"
		case 4:
			r.Verdict, r.Reason = Unsupported, "there is no gcc"
		}
		all = append(all, r)
	}
	table := func(rs []Result) string {
		var b strings.Builder
		Table(&b, rs)
		return b.String()
	}
	page := "Made on " + provenance.Dates(stamps) + ".\n\n" + table(all) + PeersHeading + "\n| a | b | c | d | ok | ok | ok | ok | ok |\n"
	got, err := ReadTable(page)
	if err != nil || !slices.Equal(got, all) || table(got) != table(all) {
		t.Errorf("%v\n%v\nwant\n%v", err, got, all)
	}
	for _, wrong := range []string{"", table(all), strings.ReplaceAll(page, "it must", ""), strings.ReplaceAll(page, "| ok |", "| fine |")} {
		if _, err := ReadTable(wrong); !errors.Is(err, errPage) {
			t.Errorf("%v:\n%s", err, wrong)
		}
	}
}

// Rows of transports with few cells are blank where they have none, and say so where they lack one.
func TestFewCells(t *testing.T) {
	var b strings.Builder
	Table(&b, []Result{{Cell: Cell{"c", "fd", Direct, "ring", NoFault}, Verdict: OK}})
	if want := "| c | fd | direct | none | ok |  |  | not run | not run |\n"; !strings.Contains(b.String(), want) {
		t.Errorf("no %q in\n%s", want, b.String())
	}
}
