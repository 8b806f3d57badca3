package performance

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/openimpi/impi/internal/provenance"
)

const head = `# Performance

See here how fast impi is beside other MPIs, and what its features cost. Compare the ratios and not
the figures: those of one machine mean little elsewhere, and on a shared machine they change by the
minute. All figures of a table are of one run, in which all took turns, and are medians of its
repetitions. A ratio above 1 means that ours is that many times better, unless the text says
otherwise. Some rows have a goal: "≥ 0.67" after the ratio says that it is met, bold type that it is
missed. What made the difference, what did not, and figures of earlier days are in [the history of
experiments](decisions/0039-experiments-on-speed.md).

Made by ` + "`make performance`" + ` on %s. [performance.json](performance.json) has the figures as impi-bench printed them.

Machine: %s.

`

// Write writes docs/performance.md, with the answers to all Questions. Those without an answer are
// listed as not measured.
func Write(w io.Writer, answers []Answer) error {
	var b strings.Builder
	var dates []provenance.Stamp
	for _, a := range answers {
		dates = append(dates, a.Made)
	}
	if len(answers) == 0 {
		return fmt.Errorf("there are no figures")
	}
	fmt.Fprintf(&b, head, provenance.Dates(dates), machines(answers))
	tables := make([]string, 0, len(Questions))
	var sum summary
	for i := range Questions {
		q := &Questions[i]
		j := slices.IndexFunc(answers, func(a Answer) bool { return a.Question == q.Name })
		if j < 0 {
			tables = append(tables, fmt.Sprintf("## %s\n\nNot measured: `make performance ONLY=%s`.\n\n", q.Title, q.Name))
			continue
		}
		tables = append(tables, section(q, &answers[j], &sum))
	}
	sum.write(&b)
	b.WriteString(strings.TrimRight(strings.Join(tables, ""), "\n") + "\n")
	_, err := io.WriteString(w, wrapProse(b.String()))
	return err
}

// wrapProse wraps the lines of a page that are neither of a table nor code.
func wrapProse(page string) string {
	lines, code := strings.Split(page, "\n"), false
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, "```"):
			code = !code
		case code || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "* "):
			lines[i] = Wrap(line, "  ")
		default:
			lines[i] = Wrap(line, "")
		}
	}
	return strings.Join(lines, "\n")
}

// Wrap breaks a text into lines of at most 100 characters, all but the first with an indent.
func Wrap(text, indent string) string {
	var b strings.Builder
	at := 0
	for _, word := range strings.Fields(text) {
		long := utf8.RuneCountInString(word)
		switch {
		case at == 0:
		case at+1+long > 100:
			b.WriteString("\n" + indent)
			at = len(indent)
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += long
	}
	return b.String()
}

// machines describes those of all answers. A virtual machine may move to another host between two.
func machines(answers []Answer) string {
	m := answers[0].Machine
	var cpus []string
	for _, a := range answers {
		if !slices.Contains(cpus, a.Machine.CPU) {
			cpus = append(cpus, a.Machine.CPU)
		}
	}
	m.CPU = strings.Join(cpus, " or ")
	return m.String()
}

func (m Machine) String() string {
	s := fmt.Sprintf("%s, %d cores, %s of memory, Linux %s, %s", m.CPU, m.Cores, m.Memory, m.Kernel, m.Go)
	if len(m.Peers) > 0 {
		s += "; " + strings.Join(m.Peers, ", ")
	}
	return s
}

type summary struct {
	met    int
	missed []string
}

func (s *summary) write(w io.Writer) {
	fmt.Fprintf(w, "**%d of %d goals are met**, each of a row and a column.", s.met, s.met+len(s.missed))
	if len(s.missed) > 0 {
		fmt.Fprintf(w, " Missed are:\n\n* %s", strings.Join(s.missed, "\n* "))
	}
	fmt.Fprint(w, "\n\n")
}

func section(q *Question, a *Answer, sum *summary) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n%s\n\n```\nbin/%s\n```\n\n", q.Title, q.Text, strings.Join(a.Command, " "))
	columns := a.columns()
	judged := q.judged(columns)
	head, rule := "| | |", "|---|--:|"
	for _, c := range columns {
		head, rule = head+" "+label(c)+" |", rule+"--:|"
		if slices.Contains(judged, c) {
			head, rule = head+" ratio |", rule+"--:|"
		}
	}
	fmt.Fprintf(&b, "%s\n%s\n", head, rule)
	var spreads []float64
	for _, r := range a.Figures.results() {
		for i, row := range r.Rows {
			what := ""
			if i == 0 {
				what = fmt.Sprintf("%s, %s", r.Benchmark, r.Unit)
			}
			fmt.Fprintf(&b, "| %s | %s |", what, size(row.Size, r.Benchmark))
			for _, c := range columns {
				fmt.Fprintf(&b, " %s |", number(row.Values[c]))
				if slices.Contains(judged, c) {
					fmt.Fprintf(&b, " %s |", q.verdict(r, row, c, sum))
				}
				if s, ok := row.Spreads[c]; ok {
					spreads = append(spreads, s)
				}
			}
			b.WriteString("\n")
		}
	}
	slices.Sort(spreads)
	fmt.Fprintf(&b, "\nMedians of %d repetitions, whose spreads (largest less smallest, as a part of the median) are %.0f %% in the median and at most %.0f %%. "+
		"%s, %s, load before it %s.\n\n", a.Figures.Repeat, 100*spreads[len(spreads)/2], 100*spreads[len(spreads)-1], provenance.Dates([]provenance.Stamp{a.Made}), a.Machine.CPU, a.Machine.Load)
	return b.String()
}

func (q *Question) judged(columns []string) []string {
	if len(q.Of) > 0 {
		return q.Of
	}
	return slices.DeleteFunc(slices.Clone(columns), func(c string) bool { return c == inGo })
}

func (q *Question) verdict(r Result, row Row, column string, sum *summary) string {
	ratio, ok := row.Ratios[column]
	if len(q.Of) > 0 {
		peers := q.Peers
		if one := q.Pairs[column]; one != "" {
			peers = []string{one}
		}
		ratio, ok = r.beside(row, column, peers)
	}
	if !ok {
		return ""
	}
	text := strconv.FormatFloat(ratio, 'f', 2, 64)
	if in, ok := row.Intervals[column]; ok {
		text = fmt.Sprintf("%.3f (%.3f to %.3f)", ratio, in[0], in[1])
	}
	g, ok := q.goal(column, r.Benchmark, row.Size)
	if !ok {
		return text
	}
	wanted := fmt.Sprintf("≥ %v", g.Least)
	if g.Most != 0 {
		wanted = fmt.Sprintf("≤ %v", g.Most)
	}
	if g.met(ratio) {
		sum.met++
		return text + ", " + wanted
	}
	sum.missed = append(sum.missed, fmt.Sprintf("%s: %s, %s %s: %s, %s wanted",
		strings.TrimSuffix(q.Title, "?"), label(column), r.Benchmark, size(row.Size, r.Benchmark), strconv.FormatFloat(ratio, 'f', 3, 64), wanted))
	return "**" + text + ", not " + wanted + "**"
}

func label(column string) string {
	names := map[string]string{"mpich": "MPICH", "mpich by srun": "MPICH by srun", "openmpi": "Open MPI", "resume": "resuming", "channel": "agents"}
	return cmp.Or(names[column], column)
}

// size returns a row's size, in bytes if the benchmark has bytes.
func size(n int, bench string) string {
	switch {
	case slices.Contains([]string{"spawn", "start", "memory", "plugins"}, bench):
		return fmt.Sprintf("%d procs", n)
	case strings.HasPrefix(bench, "start by "):
		return fmt.Sprintf("%d machines", n)
	case n == 0:
		return ""
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}

// number returns a value with three significant digits, or more before the point.
func number(v float64) string {
	switch {
	case v == 0:
		return ""
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
