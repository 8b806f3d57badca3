package campaign

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

const head = `# Campaigns

See here how much was searched for faults that tests of some minutes do not show, and what was
found. Each search goes on where it stopped, at any commit: ` + "`make campaign`" + ` for ten minutes of all
of them, ` + "`make campaign WHAT=calls BUDGET=2h`" + ` for two hours of one. It ends with status 1 if
it has found something new. [campaign.json](campaign.json) has what this page is made of.

| search | what it does | done | goal |
|---|---|---|---|
`

var about = map[string]struct{ text, unit, goal string }{
	Seeds:   {"[the simulator](simulator.md) runs jobs with losses, cuts and stalls; nothing may be lost, doubled or overtaken, and nobody may hang", "seeds", "1,000,000"},
	Worlds:  {"the same with jobs that meet, spawn and part", "seeds", ""},
	Survive: {"the same with two jobs that meet and go on without the procs that they lose, or to which links are cut", "seeds", ""},
	Calls:   {"in a job of two sites of two procs, one system call of one process fails, or a write is short; the job must succeed or say what went wrong, within 90 s, and leave nothing behind", "points", "each"},
	Fuzz:    {"[fuzz targets](testing.md#fuzzing), the one with the least time first", "s", "24 h for each"},
	Kills:   {"jobs of two sites of two procs of which one to three processes are killed at any time; they must end within 90 s, and nothing may be left", "jobs", "6 h"},
}

// WritePage writes the record as the Markdown page of the docs.
func (r *Record) WritePage(w io.Writer) error {
	var b strings.Builder
	b.WriteString(head)
	for _, kind := range Kinds {
		n, seconds := r.Count(kind)
		done := fmt.Sprintf("%s %s in %s", thousands(n), about[kind].unit, span(seconds))
		if kind == Fuzz {
			done = fmt.Sprintf("%s for %d targets", span(seconds), len(r.Targets))
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", kind, about[kind].text, done, about[kind].goal)
	}
	r.findings(&b)
	b.WriteString("\n## Pieces\n\nWhat was done at which commit. A seed decides something else once the simulator or what it runs has\nchanged, and so does the number of a call.\n\n" +
		"| search | date | commit | range or count | took | found |\n|---|---|---|---|---|---|\n")
	for _, p := range r.Pieces {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", p.Kind, p.Made.Day, p.Made.Commit, p.extent(), span(p.Seconds), cmp.Or(strings.TrimPrefix(strconv.Itoa(p.Found), "0"), "none"))
	}
	r.targets(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func (p *Piece) extent() string {
	switch p.Kind {
	case Seeds, Worlds, Survive:
		return thousands(p.From) + " to " + thousands(p.To-1)
	case Calls:
		return fmt.Sprintf("%s of about %s points; %s of these calls were not made in the run that was to fail them", thousands(p.To-p.From), thousands(p.Of), thousands(p.Missed))
	case Fuzz:
		return span(p.To - p.From)
	}
	return thousands(p.To-p.From) + " " + about[p.Kind].unit
}

func (r *Record) findings(b *strings.Builder) {
	open := r.Open()
	fmt.Fprintf(b, "\n## Findings\n\n%d findings, of which %d %s open.\n", len(r.Findings), len(open), map[bool]string{true: "is", false: "are"}[len(open) == 1])
	if len(r.Findings) == 0 {
		return
	}
	b.WriteString("\n| search | of | date, commit | what went wrong | |\n|---|---|---|---|---|\n")
	for _, f := range slices.Concat(open, slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool { return f.Ended == "" })) {
		fmt.Fprintf(b, "| `%s` | %s | %s, %s | %s | %s |\n", f.Kind, cell(f.What), f.Made.Day, f.Made.Commit, cell(f.Text), cell(cmp.Or(f.Ended, "**open**")))
	}
}

func (r *Record) targets(b *strings.Builder) {
	if len(r.Targets) == 0 {
		return
	}
	b.WriteString("\n## Fuzz targets\n\n| target | time | inputs |\n|---|--:|--:|\n")
	for _, name := range slices.Sorted(maps.Keys(r.Targets)) {
		t := r.Targets[name]
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", name, span(t.Seconds), thousands(t.Inputs))
	}
}

// cell makes one line of text that a table can have.
func cell(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 300 {
		text = strings.ToValidUTF8(text[:300], "") + " ..."
	}
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "[", `\[`).Replace(text)
}

// span writes seconds as 3h20m0s.
func span(seconds uint64) string { return (time.Duration(seconds) * time.Second).String() }

// thousands writes 1234567 as 1,234,567.
func thousands(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
