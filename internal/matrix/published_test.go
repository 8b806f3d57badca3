package matrix

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/provenance"
	"github.com/openimpi/impi/internal/skips"
)

// maxBehind is how many commits the code may be ahead of the published matrix. make soak
// runs a quick part of the matrix at each commit.
const maxBehind = 100

// TestPublishedMatrix: docs/matrix.md has every cell there is, none of them failed or left
// out, and the transports, the plugins and the node have not changed much since.
func TestPublishedMatrix(t *testing.T) {
	b, err := os.ReadFile("../../docs/matrix.md")
	if err != nil {
		t.Fatal(err)
	}
	ours, others, _ := strings.Cut(string(b), PeersHeading)
	for _, fault := range incomplete(ours) {
		t.Error(fault)
	}
	for _, peer := range Peers {
		for _, f := range PeerFaults {
			if !strings.Contains(others, fmt.Sprintf("\n| %s | %s |", peer, f)) {
				t.Errorf("no jobs with %s, %s", peer, f)
			}
		}
	}
	for _, part := range []string{ours, others} {
		if strings.Contains(part, "not run") || strings.Contains(part, marks[Failed]) || strings.Contains(part, "-quick") {
			t.Errorf("cells are not run, or have failed:\n%s", part)
		}
	}
	if err := provenance.History("../.."); err != nil {
		skips.NotRun(t, err.Error(), "test a checkout with its history")
	}
	for i, part := range []string{ours, others} {
		commits := provenance.Commits(part)
		if len(commits) == 0 {
			t.Errorf("part %d does not say of which commit it is", i+1)
		}
		for _, c := range commits {
			n, err := provenance.CommitsBehind("../..", c, "transports", "plugins", "internal/node", "internal/lifetime", "internal/routes", "internal/procs", "internal/site", "internal/connmgr", "internal/spawner", "internal/operator")
			if err != nil || n > maxBehind {
				t.Errorf("it is of commit %s, and transports, plugins or the node were changed %d commits later, %d at most: run make matrix (%v)", c, n, maxBehind, err)
			}
		}
	}
}

// incomplete lists the rows that a table of cells lacks, and those of which nothing was run
// although something can be.
func incomplete(table string) (faults []string) {
	row := make(map[string][]string) // the marks, by what is before them
	for line := range strings.Lines(table) {
		if cells := strings.Split(strings.Trim(line, "|\n "), "|"); len(cells) == 4+len(Programs) {
			row[strings.Join(cells[:4], "|")] = cells[4:]
		}
	}
	for _, c := range Select(Known(""), false) {
		if c.Program != Programs[0] {
			continue
		}
		name := fmt.Sprintf("%s | %s | %s | %s ", c.Transport, c.Plane, c.Mode, c.Fault)
		got, ok := row[name]
		if !ok {
			faults = append(faults, fmt.Sprintf("there is no row %s: run make matrix, or only its cells: go run ./internal/matrix/run -only '^%s/' -from docs/matrix.md -out docs/matrix.md",
				name, regexp.QuoteMeta(c.Transport)))
			continue
		}
		for i, mark := range got {
			if lacks(c.Transport, Programs[i]) {
				continue
			}
			mark, _, reason := strings.Cut(strings.TrimSpace(mark), " (")
			if mark == marks[Unsupported] && reason && lacks(c.Transport, Programs[1]) {
				continue // it needs more than Go, and the machine has not what it says
			}
			if (mark == marks[Ended] || mark == marks[Unsupported]) && !reason {
				faults = append(faults, fmt.Sprintf("%s: %s is %q, and does not say why", name, Programs[i], mark))
			}
			if mark != marks[OK] && (c.Fault == NoFault || mark != marks[Ended] && mark != marks[Unsupported]) {
				faults = append(faults, fmt.Sprintf("%s: %s is %q", name, Programs[i], mark))
			}
		}
	}
	return faults
}

// TestIncompleteTables: what a table lacks is noticed.
func TestIncompleteTables(t *testing.T) {
	var all []Result
	for _, c := range Select(Known(""), false) {
		all = append(all, Result{Cell: c, Verdict: OK})
	}
	table := func(rs []Result) string {
		var b strings.Builder
		Table(&b, rs)
		return b.String()
	}
	if f := incomplete(table(all)); len(f) != 0 {
		t.Errorf("a complete one lacks %q", f)
	}
	first := all[0]
	without := slices.DeleteFunc(slices.Clone(all), func(r Result) bool { r.Program = first.Program; return r.Cell == first.Cell })
	if f := incomplete(table(without)); len(f) != 1 || !strings.Contains(f[0], "-only '^tcp/' -from") {
		t.Errorf("of a row that is not there: %q", f)
	}
	if f := incomplete(table(all[:len(all)-1])); len(f) != 1 {
		t.Errorf("of a cell that was not run: %q", f)
	}
	at := slices.IndexFunc(all, func(r Result) bool { return r.Transport == "ofi" })
	all[at].Verdict, all[at].Reason = Unsupported, "there is no libfabric"
	if f := incomplete(table(all)); len(f) != 0 {
		t.Errorf("of a plugin that needs more than Go: %q", f)
	}
	all[at].Reason = ""
	if f := incomplete(table(all)); len(f) == 0 {
		t.Error("a cell may be left out without a reason")
	}
	all[at].Verdict = OK
	for _, v := range []Verdict{Failed, Unsupported, Ended} {
		one := slices.Clone(all)
		one[0].Verdict, one[0].Reason = v, "x" // without a fault
		if f := incomplete(table(one)); len(f) != 1 {
			t.Errorf("of a cell without a fault that is %v: %q", v, f)
		}
	}
}
