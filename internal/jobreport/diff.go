package jobreport

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/openimpi/impi/internal/quantity"
)

// Difference is a value that differs between two reports.
type Difference struct {
	What   string `json:"what"` // a key of titles
	Of     string `json:"of"`
	A      string `json:"a"`
	B      string `json:"b"`
	Change int64  `json:"change,omitempty"` // times: in ns; sent: in bytes; others: a number
	small  bool   // too little to be shown as text
	part   string // Change relative to A
}

// Limits of the differences that are shown as text. A number that has changed less is left out.
const (
	mostLines    = 20   // maximum number of lines of a kind
	leastPercent = 2    // least change in percent of the number
	ofAll        = 1000 // the least change is this fraction (1/ofAll) of the total of its kind,
	ofAverage    = 20   // or, if there are many numbers, 1/ofAverage of their average
)

// Compare returns what has changed from a to b: times and messages with the largest change first.
func Compare(a, b *Report) (all []Difference) {
	text := func(what, of, x, y string) {
		if x != y {
			all = append(all, Difference{What: what, Of: of, A: x, B: y})
		}
	}
	text("run", "job", a.Job, b.Job)
	text("run", "failure", a.Failure, b.Failure)
	text("run", "exit status", fmt.Sprint(a.Status), fmt.Sprint(b.Status))
	text("run", "sites", a.places(), b.places())
	all = append(all, numbers("run", map[string]int64{"duration": int64(a.Ended.Sub(a.Began))}, map[string]int64{"duration": int64(b.Ended.Sub(b.Began))}, seconds)...)
	all = append(all, numbers("class", a.byClass(), b.byClass(), seconds)...)
	all = append(all, numbers("call", a.byCall(), b.byCall(), seconds)...)
	all = append(all, numbers("calls", a.byCalls(), b.byCalls(), count)...)
	all = append(all, numbers("rank", a.byRank(), b.byRank(), seconds)...)
	all = append(all, numbers("wait", a.byWait(), b.byWait(), seconds)...)
	all = append(all, numbers("sent", a.bySent(bytesOf), b.bySent(bytesOf), func(n int64) string { return quantity.Bytes(uint64(n)) })...)
	all = append(all, numbers("messages", a.bySent(messagesOf), b.bySent(messagesOf), count)...)
	all = append(all, numbers("resumes", a.byResumes(), b.byResumes(), count)...)
	all = append(all, numbers("starts", a.byStarts(), b.byStarts(), count)...)
	x, y := versions(a), versions(b)
	for _, of := range keys(x, y) {
		text("version", of, x[of], y[of])
	}
	all = append(all, configs(a.Config, b.Config)...)
	return all
}

func count(n int64) string { return fmt.Sprint(n) }

func numbers(what string, x, y map[string]int64, show func(int64) string) (all []Difference) {
	least := max(sum(x), sum(y)) / max(ofAll, ofAverage*int64(len(keys(x, y))))
	for _, of := range keys(x, y) {
		if x[of] == y[of] {
			continue
		}
		d := Difference{What: what, Of: of, A: show(x[of]), B: show(y[of]), Change: y[of] - x[of]}
		by := abs(d.Change)
		d.small = by*100 < leastPercent*max(x[of], y[of]) || by < least
		switch {
		case x[of] == 0:
			d.part = "new"
		case y[of] == 0:
			d.part = "gone"
		case y[of] >= 2*x[of]:
			d.part = fmt.Sprintf("x %.1f", float64(y[of])/float64(x[of]))
		default:
			d.part = fmt.Sprintf("%+.0f %%", 100*float64(d.Change)/float64(x[of]))
		}
		all = append(all, d)
	}
	slices.SortStableFunc(all, func(p, q Difference) int { return cmp.Compare(abs(q.Change), abs(p.Change)) })
	return all
}

func sum(m map[string]int64) (n int64) {
	for _, x := range m {
		n += x
	}
	return n
}

func abs(n int64) int64 { return max(n, -n) }

func keys[V any](x, y map[string]V) (all []string) {
	for k := range x {
		all = append(all, k)
	}
	for k := range y {
		if _, both := x[k]; !both {
			all = append(all, k)
		}
	}
	slices.Sort(all)
	return all
}

func (r *Report) places() string {
	var all []string
	for _, s := range r.Sites {
		all = append(all, fmt.Sprintf("%s %d", s.Name, s.Procs))
	}
	return strings.Join(all, ", ")
}

func (r *Report) byCall() map[string]int64 {
	m := make(map[string]int64)
	for _, c := range r.Calls {
		m[c.Name] += c.Time
	}
	return m
}

func (r *Report) byCalls() map[string]int64 {
	m := make(map[string]int64)
	for _, c := range r.Calls {
		m[c.Name] += int64(c.Calls)
	}
	return m
}

func (r *Report) byResumes() map[string]int64 {
	m := make(map[string]int64)
	for _, l := range r.Links {
		m[fmt.Sprintf("%s by %s", l.Kind, l.Transport)] += int64(l.Resumes)
	}
	return m
}

func (r *Report) byStarts() map[string]int64 {
	m := make(map[string]int64)
	for _, p := range r.Plugins {
		m[strings.TrimSpace(fmt.Sprintf("%s at %s %s", p.Name, p.Site, p.Host))] += int64(p.Starts)
	}
	return m
}

func (r *Report) byRank() map[string]int64 {
	m := make(map[string]int64)
	for i := range r.Ranks {
		for class, t := range r.Ranks[i].Classes {
			m[fmt.Sprintf("%d %s", r.Ranks[i].Rank, class)] += t
		}
	}
	return m
}

func (r *Report) byWait() map[string]int64 {
	m := make(map[string]int64)
	for _, w := range r.Waits {
		m[fmt.Sprintf("%s for %s, %s", r.who(w.From), r.who(w.For), w.Cause)] += w.Time
	}
	return m
}

func bytesOf(s Sent) uint64    { return s.Bytes }
func messagesOf(s Sent) uint64 { return s.Messages }

func (r *Report) bySent(what func(Sent) uint64) map[string]int64 {
	m := make(map[string]int64)
	for _, s := range r.Sent {
		m[fmt.Sprintf("%s to %s", r.who(s.From), r.who(s.To))] += int64(what(s))
	}
	return m
}

func versions(r *Report) map[string]string {
	m := make(map[string]string)
	for _, v := range r.Versions {
		m[v.What] = v.Version
	}
	return m
}

// configs returns the lines that only one of two job files has.
func configs(x, y string) (all []Difference) {
	count := make(map[string]int)
	a, b := strings.Split(x, "\n"), strings.Split(y, "\n")
	for _, line := range a {
		count[strings.TrimSpace(line)]++
	}
	for _, line := range b {
		count[strings.TrimSpace(line)]--
	}
	for _, line := range a {
		if line = strings.TrimSpace(line); count[line] > 0 {
			count[line]--
			all = append(all, Difference{What: "config", A: line})
		}
	}
	for _, line := range b {
		if line = strings.TrimSpace(line); count[line] < 0 {
			count[line]++
			all = append(all, Difference{What: "config", B: line})
		}
	}
	return all
}

var titles = map[string]string{
	"run": "Run", "class": "Time in MPI by class, of all ranks", "call": "Time in MPI by call, of all ranks", "rank": "Time in MPI by rank and class",
	"calls": "Number of calls", "wait": "Who waited for whom", "sent": "Bytes of messages", "messages": "Number of messages",
	"resumes": "Links that were resumed", "starts": "Starts of plugins", "version": "Versions", "config": "Job file",
}

// Text writes differences for people.
func Text(w io.Writer, all []Difference) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "Nothing has changed.")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i, k := 0, 0; i < len(all); i = k {
		for k = i; k < len(all) && all[k].What == all[i].What; k++ {
		}
		if i > 0 {
			fmt.Fprintln(t)
		}
		fmt.Fprintln(t, titles[all[i].What])
		left := 0
		for n, d := range all[i:k] {
			switch {
			case d.small, n-left >= mostLines:
				left++
			case d.What == "config" && d.A != "":
				fmt.Fprintf(t, "  - %s\n", printable(d.A))
			case d.What == "config":
				fmt.Fprintf(t, "  + %s\n", printable(d.B))
			default:
				row := fmt.Sprintf("  %s\t%s\t-> %s\t%s\t%s", printable(d.Of), orNothing(d.A), orNothing(d.B), d.by(), d.part)
				fmt.Fprintln(t, strings.TrimRight(row, "\t"))
			}
		}
		switch {
		case left == k-i:
			fmt.Fprintf(t, "  %d with little change (-json has all)\n", left)
		case left > 0:
			fmt.Fprintf(t, "  and %d with less change (-json has all)\n", left)
		}
	}
	return t.Flush()
}

func (d *Difference) by() string {
	if d.Change == 0 {
		return ""
	}
	n := seconds(abs(d.Change))
	switch d.What {
	case "sent":
		n = quantity.Bytes(uint64(abs(d.Change)))
	case "calls", "messages", "resumes", "starts":
		n = count(abs(d.Change))
	}
	if d.Change < 0 {
		return "-" + n
	}
	return "+" + n
}

func orNothing(s string) string {
	if s == "" {
		return "-"
	}
	return printable(s)
}

// printable makes text from a file safe to print on a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, s)
}
