package status

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/internal/links"
)

// around is how many lines are not rows: the jobs, their plugins and servers, the heads, and the
// keys.
const around = 4

func (s *screen) page() int { return max(1, s.height-around) }

type table struct {
	what    string   // what the table shows
	titles  []string // titles of the columns, and of the text after them
	left    []int    // columns that begin at the left
	rows    func(now, before *look) []row
	by      int // column that it is sorted by
	reverse bool
}

func newTables() []*table {
	return []*table{
		{what: "procs", titles: procTitles, left: []int{1, 2}, rows: procRows},
		{what: "links", titles: pairTitles, left: []int{1, 2}, rows: pairRows},
	}
}

func (s *screen) shown() []row {
	rows := slices.Clone(s.rows)
	if f := strings.ToLower(s.filter); f != "" {
		rows = slices.DeleteFunc(rows, func(r row) bool {
			return !strings.Contains(strings.ToLower(r.job+" "+s.table().titles[0]+" "+strings.Join(r.cells, " ")+" "+r.last), f) // as "rank 2"
		})
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		c := a.keys[s.table().by].compare(b.keys[s.table().by])
		if s.table().by == 0 { // ranks
			c = cmp.Or(cmp.Compare(a.job, b.job), c)
		}
		if s.table().reverse {
			return -c
		}
		return c
	})
	return rows
}

// View implements tea.Model.
func (s *screen) View() tea.View { return tea.View{Content: s.draw(), AltScreen: true} }

func (s *screen) draw() string {
	rows, t := s.shown(), s.table()
	page := rows[min(s.top, len(rows)):min(s.top+s.page(), len(rows))]
	var b strings.Builder
	s.line(&b, s.summary(len(rows)))
	s.line(&b, s.pluginsAndServers())
	heads := slices.Clone(t.titles)
	heads[t.by] += map[bool]string{false: "*", true: "^"}[t.reverse]
	left := t.left
	lines := [][]string{heads}
	for i := range page {
		lines = append(lines, append(slices.Clone(page[i].cells), page[i].last))
	}
	if len(s.last.jobs()) > 1 { // ranks alone would not tell rows apart
		for i := range lines {
			job := "JOB"
			if i > 0 {
				job = page[i-1].job
			}
			lines[i] = slices.Insert(lines[i], 0, job)
		}
		for left = []int{0}; len(left) <= len(t.left); {
			left = append(left, t.left[len(left)-1]+1)
		}
	}
	width := make([]int, len(lines[0]))
	for _, c := range lines {
		for i := range c {
			width[i] = max(width[i], utf8.RuneCountInString(c[i]))
		}
	}
	for _, c := range lines {
		var line strings.Builder
		last := len(c) - 1
		for i := range last {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(c[i]))
			if slices.Contains(left, i) {
				line.WriteString(c[i] + pad + "  ")
			} else {
				line.WriteString(pad + c[i] + "  ")
			}
		}
		s.line(&b, line.String()+c[last])
	}
	for n := len(page); n < s.page(); n++ {
		s.line(&b, "")
	}
	b.WriteString(cut(s.hint(), s.width))
	return b.String()
}

func (s *screen) line(b *strings.Builder, text string) {
	b.WriteString(cut(oneLine(text), s.width) + "\n")
}

func cut(text string, width int) string {
	if r := []rune(text); len(r) > width {
		return string(r[:max(0, width)])
	}
	return text
}

func (s *screen) summary(rows int) string {
	if s.last == nil {
		return "asking the nodes"
	}
	states := make(map[string]int)
	s.last.procs(func(_ who, _ *links.SiteState, x *links.Proc) { states[stateOf(x)]++ })
	var list []string
	bad := 0 // entries of list that report problems
	jobs := s.last.jobs()
	for i := range jobs {
		j := &jobs[i]
		name := j.Name
		if slices.ContainsFunc(jobs, func(x Job) bool { return x.Name == name && x.ID != j.ID }) {
			name += " (" + j.ID + ")"
		}
		text := "job " + name
		at := len(list)
		if j.Deadlock != nil {
			text = fmt.Sprintf("PROBABLE DEADLOCK for %s of job %s", ago(j.Deadlock.For), name)
			if len(j.Deadlock.Jobs) > 0 {
				text = fmt.Sprintf("PROBABLE DEADLOCK for %s of jobs %s", ago(j.Deadlock.For), strings.Join(j.Deadlock.Jobs, " and "))
			}
			at = bad // first, as the line is cut where the screen ends
			bad++
		}
		if len(j.UnderWay) > 0 {
			text += " (" + j.UnderWay[0].String() + ")"
		}
		if j.Elsewhere != nil {
			text += " (all procs wait, which depends on " + j.Elsewhere.String() + ")"
		}
		for k := range j.Sites {
			if p := j.Sites[k].Problem; p != "" {
				text += " (" + j.Sites[k].Label() + ": " + p + ")"
			}
		}
		for k := range j.Spares {
			text += " (spare " + j.Spares[k].Name + ": " + j.Spares[k].State + ")"
		}
		list = slices.Insert(list, at, text)
	}
	for _, e := range s.last.report.Ended {
		list = append(list, e.String())
	}
	if len(jobs) == 0 {
		list = append(list, "no job any more")
	}
	var counts []string
	for _, name := range []string{"starting", "init", "running", "blocked", "silent", "not asked", "lost", "finished", "ended", "unknown"} {
		if n := states[name]; n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, name))
		}
	}
	text := join(": ", strings.Join(list, ", "), strings.Join(counts, ", "))
	if rows != len(s.rows) {
		text += fmt.Sprintf("; %d %s shown", rows, s.table().what)
	}
	if s.table().what == "links" {
		left := 0
		for i := range jobs {
			if _, more := LinksOfHosts(&jobs[i].Job); !more { // else pairs are counted by hosts
				left += jobs[i].Left
			}
		}
		if left > 0 {
			text += fmt.Sprintf("; of %d more pairs nothing is told", left)
		}
	}
	return s.last.at.Format(time.TimeOnly) + "  " + text
}

// pluginsAndServers says what is to be known of the plugins and servers of the jobs: first what is
// not as it should be.
func (s *screen) pluginsAndServers() string {
	var wrong, rest []string
	jobs := s.last.jobs()
	for i := range jobs {
		j := &jobs[i]
		name := ""
		if len(jobs) > 1 {
			name = j.Name + " "
		}
		for k := range j.Sites {
			if p := plugins(&j.Sites[k]); p != "" {
				wrong = append(wrong, name+j.Sites[k].Label()+": "+p)
			}
		}
		for _, text := range servers(j, s.last.at) {
			rest = append(rest, name+text)
		}
	}
	return strings.Join(append(wrong, rest...), "; ")
}

func (s *screen) hint() string {
	switch {
	case s.typing:
		return "show rows with: " + s.filter + "_   (Enter, or Esc for all)"
	case s.paused:
		return "paused: p goes on, q quits"
	case s.filter != "":
		return "rows with \"" + s.filter + "\"   / another filter (Esc there: all)  s sort  r reverse  p pause  q quit"
	}
	return "s sort by the next column  r reverse  / filter  l procs or links  p pause  arrows scroll  q quit"
}

func isTerminal(files ...*os.File) bool {
	for _, f := range files {
		if f == nil {
			return false
		}
		if _, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS); err != nil {
			return false
		}
	}
	return true
}
