package jobreport

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// Difference is something that two reports say differently.
type Difference struct {
	What   string `json:"what"` // "run", "class", "call", "rank", "wait", "sent", "version" or "config"
	Of     string `json:"of"`
	A      string `json:"a"`
	B      string `json:"b"`
	Change int64  `json:"change,omitempty"` // of times in ns, of messages in bytes
}

// mostLines is how many differences of a kind are shown as text.
const mostLines = 20

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
	all = append(all, numbers("rank", a.byRank(), b.byRank(), seconds)...)
	all = append(all, numbers("wait", a.byWait(), b.byWait(), seconds)...)
	all = append(all, numbers("sent", a.bySent(), b.bySent(), func(n int64) string { return size(uint64(n)) })...)
	x, y := versions(a), versions(b)
	for _, of := range keys(x, y) {
		text("version", of, x[of], y[of])
	}
	all = append(all, configs(a.Config, b.Config)...)
	return all
}

// numbers compares what has a number in both.
func numbers(what string, x, y map[string]int64, show func(int64) string) (all []Difference) {
	for _, of := range keys(x, y) {
		if x[of] != y[of] {
			all = append(all, Difference{what, of, show(x[of]), show(y[of]), y[of] - x[of]})
		}
	}
	slices.SortStableFunc(all, func(p, q Difference) int { return cmp.Compare(abs(q.Change), abs(p.Change)) })
	return all
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

func (r *Report) bySent() map[string]int64 {
	m := make(map[string]int64)
	for _, s := range r.Sent {
		m[fmt.Sprintf("%s to %s", r.who(s.From), r.who(s.To))] += int64(s.Bytes)
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

// titles are what text says of a kind of differences.
var titles = map[string]string{
	"run": "Run", "class": "Time in MPI by class, of all ranks", "call": "Time in MPI by call, of all ranks", "rank": "Time in MPI by rank and class",
	"wait": "Who waited for whom", "sent": "Bytes of messages", "version": "Versions", "config": "Job file",
}

// Text writes differences for people.
func Text(w io.Writer, all []Difference) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "Nothing has changed.")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i, n := 0, 0; i < len(all); i++ {
		d := all[i]
		if i == 0 || all[i-1].What != d.What {
			if n = 0; i > 0 {
				fmt.Fprintln(t)
			}
			fmt.Fprintln(t, titles[d.What])
		}
		if n++; n == mostLines+1 {
			left := 1
			for k := i + 1; k < len(all) && all[k].What == d.What; k++ {
				left++
			}
			fmt.Fprintf(t, "  and %d more, with less change\n", left)
		}
		if n > mostLines {
			continue
		}
		switch {
		case d.What == "config" && d.A != "":
			fmt.Fprintf(t, "  - %s\n", printable(d.A))
		case d.What == "config":
			fmt.Fprintf(t, "  + %s\n", printable(d.B))
		default:
			fmt.Fprintf(t, "  %s\t%s\t-> %s\t%s\n", printable(d.Of), orNothing(d.A), orNothing(d.B), d.ratio())
		}
	}
	return t.Flush()
}

func (d *Difference) ratio() string {
	sign := ""
	if d.Change > 0 {
		sign = "+"
	}
	switch d.What {
	case "sent":
		if d.Change < 0 {
			return "-" + size(uint64(-d.Change))
		}
		return sign + size(uint64(d.Change))
	case "version", "config":
		return ""
	}
	if d.Change == 0 {
		return ""
	}
	if d.Change < 0 {
		return "-" + seconds(-d.Change)
	}
	return sign + seconds(d.Change)
}

func orNothing(s string) string {
	if s == "" {
		return "-"
	}
	return printable(s)
}

// printable makes a text of a file harmless to a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, s)
}
