package protocol

import (
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/openimpi/impi/internal/conformance/play"
	"github.com/openimpi/impi/internal/conformance/report"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

type tally struct {
	passed, failed map[play.Level]int
	skipped        int
}

// WriteMarkdown writes the report as a page to publish. command is the command line that made the
// report, as a user types it.
func (r *Report) WriteMarkdown(w io.Writer, command string) {
	p := report.Printer{W: w}
	p.Line("# %s\n", strings.TrimSpace(r.IUT+" "+r.Version))
	p.Line("Look here for which rules of IMPI 0.0 this implementation keeps, and what it does where it does not.\n")
	p.Line("Made by `%s`%s on %s (%s/%s), in %.0f s. What the words mean is in [README.md](README.md).\n",
		command, r.commit(), r.Begun.UTC().Format("2 January 2006"), runtime.GOOS, runtime.GOARCH, r.Seconds)
	p.Line("%d passed, %d failed (%d MUST, %d SHOULD), %d could not be tried.\n", r.Passed, r.Failed, r.Musts, r.Failed-r.Musts, r.Skipped)
	r.markChapters(p)
	r.markViolations(p)
	p.Line("\n## All cases\n\n| Case | Level | Result | Expected |\n|---|---|---|---|")
	for _, x := range r.Results {
		p.Line("| %s | %s | %s | %s |", x.ID, x.Level, report.Mark(x.Verdict), cell(x.Expect))
	}
}

func (r *Report) commit() string {
	if r.Tester == "" {
		return ""
	}
	return ", commit " + r.Tester + ","
}

func (r *Report) markChapters(p report.Printer) {
	by, order := map[string]*tally{}, []string{}
	for _, x := range r.Results {
		t := by[x.Chapter]
		if t == nil {
			t = &tally{map[play.Level]int{}, map[play.Level]int{}, 0}
			by[x.Chapter], order = t, append(order, x.Chapter)
		}
		switch x.Verdict {
		case transporttest.Pass:
			t.passed[x.Level]++
		case transporttest.Skip:
			t.skipped++
		default:
			t.failed[x.Level]++
		}
	}
	p.Line("| Chapter | MUST passed | MUST failed | SHOULD passed | SHOULD failed | not tried |\n|---|---|---|---|---|---|")
	for _, name := range order {
		t := by[name]
		p.Line("| %s | %d | %s | %d | %s | %s |", name, t.passed[play.Must], bold(t.failed[play.Must]), t.passed[play.Should], bold(t.failed[play.Should]), bold(t.skipped))
	}
}

func bold(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("**%d**", n)
}

func (r *Report) markViolations(p report.Printer) {
	first := true
	for _, x := range r.Results {
		if x.Verdict == transporttest.Pass {
			continue
		}
		if first {
			p.Line("\n## What did not pass\n\n| Case | Level | Expected | What happened |\n|---|---|---|---|")
			first = false
		}
		what := cell(x.Reason)
		if x.Verdict == transporttest.Skip {
			what = "not tried: " + what
		}
		p.Line("| %s | %s | %s | %s |", x.ID, x.Level, cell(x.Expect), what)
	}
}

func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ").Replace(s)
}
