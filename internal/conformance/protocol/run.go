package protocol

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/openimpi/impi/internal/conformance/iut"
	"github.com/openimpi/impi/internal/conformance/play"
	"github.com/openimpi/impi/internal/conformance/report"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

// Options select what to try.
type Options struct {
	// Run chooses cases: those whose number, chapter or "chapter number" it matches.
	// Nil: all.
	Run *regexp.Regexp

	// Level leaves out cases of the other level, if it is not empty.
	Level play.Level

	// Quick leaves out slow cases.
	Quick bool

	// Patience is the maximum time of each step of the IUT; 0 means 10 s.
	Patience time.Duration

	// Data is the form in which the tester's collective operations send and expect elements; empty
	// is play.External32. The chapter about data always uses External32.
	Data play.Data

	// Trace keeps the packets of cases that pass, too.
	Trace bool

	// Parallel is the number of cases that run at a time; 0 means one.
	Parallel int

	// Progress, if not nil, is called for each case when it begins, with an empty verdict, and when
	// it has ended. Calls do not overlap.
	Progress func(r Result, done, all int)
}

// Result describes how one case ended.
type Result struct {
	ID        string                `json:"id"`
	Chapter   string                `json:"chapter"`
	Level     play.Level            `json:"level"`
	Expect    string                `json:"expect"`
	Reference string                `json:"reference"`
	Verdict   transporttest.Verdict `json:"verdict"`
	Reason    string                `json:"reason,omitempty"` // what was wrong, or why the case was skipped
	Trace     []string              `json:"trace,omitempty"`  // every packet and record, on failure
	Seconds   float64               `json:"seconds"`
}

// Report is everything that a run has found.
type Report struct {
	IUT     string    `json:"iut"`
	Version string    `json:"version"`
	Tester  string    `json:"tester"` // the commit that this program was built from
	Begun   time.Time `json:"begun"`
	Seconds float64   `json:"seconds"`

	// Verdict is Fail if a MUST was violated, or if no case passed.
	Verdict transporttest.Verdict `json:"verdict"`
	Passed  int                   `json:"passed"`
	Failed  int                   `json:"failed"`
	Skipped int                   `json:"skipped"`
	Musts   int                   `json:"failed_must"` // number of failed MUST cases

	Results []Result `json:"results"`
}

// ErrNothing is wrapped when no case fits the options.
var ErrNothing = errors.New("no case is chosen")

// Chosen returns the cases that all options admit: Run by ID or chapter, Level, and Quick, which
// leaves out slow ones. Unset options admit all.
func (o Options) Chosen() (all []play.Case) {
	for _, c := range play.Cases() {
		fits := o.Run == nil || o.Run.MatchString(c.ID) || o.Run.MatchString(c.Chapter) || o.Run.MatchString(c.Chapter+" "+c.ID)
		if fits && (o.Level == "" || o.Level == c.Level) && !(o.Quick && c.Slow) {
			all = append(all, c)
		}
	}
	return all
}

// Run judges an implementation. Violations are in the report, not in the error.
func Run(ctx context.Context, s iut.Subject, o Options) (*Report, error) {
	if o.Patience <= 0 {
		o.Patience = 10 * time.Second
	}
	cases := o.Chosen()
	if len(cases) == 0 {
		return nil, ErrNothing
	}
	r := &runner{s: s, o: o, cases: cases}
	r.report = &Report{IUT: s.Name(), Version: s.Version(), Tester: tester(), Begun: time.Now(), Results: make([]Result, len(cases))}
	var workers sync.WaitGroup
	for range max(1, o.Parallel) {
		workers.Go(func() {
			for r.one(ctx) {
			}
		})
	}
	workers.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.report.Seconds = time.Since(r.report.Begun).Seconds()
	r.report.count()
	return r.report, nil
}

func tester() string {
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return ""
	}
	commit := ""
	for _, x := range info.Settings {
		switch {
		case x.Key == "vcs.revision":
			commit = x.Value[:min(12, len(x.Value))]
		case x.Key == "vcs.modified" && x.Value == "true" && commit != "":
			commit += ", with changes"
		}
	}
	return commit
}

type runner struct {
	s     iut.Subject
	o     Options
	cases []play.Case

	mu     sync.Mutex
	begun  int
	done   int
	report *Report
}

func (r *runner) one(ctx context.Context) bool {
	r.mu.Lock()
	i := r.begun
	if i == len(r.cases) || ctx.Err() != nil {
		r.mu.Unlock()
		return false
	}
	r.begun++
	r.progress(result(r.cases[i]))
	r.mu.Unlock()

	res := try(r.cases[i], r.s, r.o)

	r.mu.Lock()
	defer r.mu.Unlock()
	r.done++
	r.report.Results[i] = res
	r.progress(res)
	return true
}

// progress tells of a case. The caller holds mu.
func (r *runner) progress(res Result) {
	if r.o.Progress != nil {
		r.o.Progress(res, r.done, len(r.cases))
	}
}

func result(c play.Case) Result {
	return Result{ID: c.ID, Chapter: c.Chapter, Level: c.Level, Expect: c.Expect, Reference: c.Reference}
}

func try(c play.Case, s iut.Subject, o Options) Result {
	res := result(c)
	out, trace := play.Run(c, s, o.Patience, o.Data)
	res.Verdict, res.Reason, res.Seconds = out.Verdict, out.Reason, out.Took.Seconds()
	if out.Verdict == transporttest.Fail || o.Trace {
		res.Trace = trace
	}
	return res
}

func (r *Report) count() {
	r.Passed, r.Failed, r.Skipped = report.Tally(r.rows())
	for _, x := range r.Results {
		if x.Verdict == transporttest.Fail && x.Level == play.Must {
			r.Musts++
		}
	}
	r.Verdict = transporttest.Pass
	if r.Musts > 0 || r.Passed == 0 {
		r.Verdict = transporttest.Fail
	}
}

func (r *Report) rows() []report.Row {
	rows := make([]report.Row, len(r.Results))
	for i, x := range r.Results {
		rows[i] = report.Row{
			ID: x.ID, Name: string(x.Level), Part: strings.ReplaceAll(x.Chapter, " ", "-"), Rule: x.Expect + " (" + x.Reference + ")",
			Verdict: x.Verdict, Reason: x.Reason, Log: x.Trace, Seconds: x.Seconds,
		}
	}
	return rows
}

// WriteJSON writes the report for programs, with all results and their traces.
func (r *Report) WriteJSON(w io.Writer) error { return report.WriteJSON(w, r) }

// WriteJUnit writes the report as JUnit's XML.
func (r *Report) WriteJUnit(w io.Writer) error {
	return report.WriteJUnit(w, report.Suite{Subject: r.IUT, Begun: r.Begun, Seconds: r.Seconds}, r.rows())
}

// Line returns one line of the table for people: verdict, ID, level, chapter, seconds, and the
// first line of the reason.
func Line(r Result) string {
	line := fmt.Sprintf("%-4s  %-18s %-6s %-14s %6.2fs", report.Mark(r.Verdict), r.ID, r.Level, r.Chapter, r.Seconds)
	if r.Reason != "" {
		line += "  " + report.FirstLine(r.Reason)
	}
	return line
}

// WriteSummary writes the result of a run, for people: each violation with what was expected, what
// happened and the packets before it, and the count.
func (r *Report) WriteSummary(w io.Writer) {
	p := report.Printer{W: w}
	for _, x := range r.Results {
		if x.Verdict != transporttest.Fail {
			continue
		}
		p.Line("\n%s (%s, %s)\n  expected: %s\n  but:      %s", x.ID, x.Level, x.Reference, x.Expect, x.Reason)
		for _, line := range x.Trace {
			p.Line("  | %s", line)
		}
	}
	word := map[transporttest.Verdict]string{transporttest.Pass: "PASS", transporttest.Fail: "FAIL"}[r.Verdict]
	p.Line("\n%s: %s %s: %d passed, %d failed (%d MUST, %d SHOULD), %d skipped, in %.1f s",
		word, r.IUT, r.Version, r.Passed, r.Failed, r.Musts, r.Failed-r.Musts, r.Skipped, r.Seconds)
}
