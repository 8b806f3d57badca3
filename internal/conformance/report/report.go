// Package report writes what a conformance run has found, for people and for CI: a
// line for each case, JUnit's XML, JSON. Both of impi-conform's testers use it.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

// Row is one case and how it ended.
type Row struct {
	ID      string
	Name    string // name after the number; may be empty
	Part    string // of the subject that was tried, such as a data plane; may be empty
	Rule    string
	Verdict transporttest.Verdict
	Reason  string   // what was violated, or why the case was skipped
	Remedy  string   // what to do about the violation; may be empty
	Log     []string // output of the case
	Seconds float64
}

// Tally counts rows by verdict. Every verdict that is neither Pass nor Skip counts as failed.
func Tally(rows []Row) (passed, failed, skipped int) {
	for _, r := range rows {
		switch r.Verdict {
		case transporttest.Pass:
			passed++
		case transporttest.Skip:
			skipped++
		default:
			failed++
		}
	}
	return passed, failed, skipped
}

// Mark returns the word for a verdict at the start of a line: "ok", "FAIL", "skip", or "..." for a
// case that runs.
func Mark(v transporttest.Verdict) string {
	switch v {
	case transporttest.Pass:
		return "ok"
	case transporttest.Skip:
		return "skip"
	case "":
		return "..."
	default:
		return "FAIL"
	}
}

// FirstLine returns s up to its first newline, for tables: reasons may have several lines.
func FirstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// WriteJSON writes any report as one indented JSON value.
func WriteJSON(w io.Writer, report any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(report)
}

// Printer writes lines. Write errors are ignored.
type Printer struct{ W io.Writer }

// Line formats a line and writes it with its newline.
func (p Printer) Line(format string, args ...any) {
	_, _ = fmt.Fprintf(p.W, format+"\n", args...)
}

func (r Row) whole() string {
	if r.Remedy == "" {
		return r.Reason
	}
	return r.Reason + "\nwhat to do: " + r.Remedy
}

// Failures writes each row that has failed, with its whole reason, the rule if the reason does not
// have it, and the remedy.
func (p Printer) Failures(rows []Row) {
	for _, r := range rows {
		if r.Verdict != transporttest.Fail {
			continue
		}
		if r.Rule != "" && !strings.Contains(r.Reason, r.Rule) {
			r.Reason += "\nthe rule: " + r.Rule
		}
		p.Line("\n%s\n  %s", strings.Join(strings.Fields(r.ID+" "+r.Name+" "+r.Part), " "), strings.ReplaceAll(r.whole(), "\n", "\n  "))
	}
}
