package status

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// around is how many lines are not rows: the jobs, an empty one, the heads, and the keys.
const around = 4

// page is how many rows the screen has room for.
func (s *screen) page() int { return max(1, s.height-around) }

// shown are the rows that pass the filter, sorted.
func (s *screen) shown() []row {
	rows := slices.Clone(s.rows)
	if f := strings.ToLower(s.filter); f != "" {
		rows = slices.DeleteFunc(rows, func(r row) bool {
			c := r.cells()
			return !strings.Contains(strings.ToLower(r.job+" "+strings.Join(c[:], " ")+" "+r.does), f)
		})
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		c := compare(&a, &b, s.by)
		if s.reverse {
			return -c
		}
		return c
	})
	return rows
}

// View implements tea.Model.
func (s *screen) View() string {
	rows := s.shown()
	page := rows[min(s.top, len(rows)):min(s.top+s.page(), len(rows))]
	var b strings.Builder
	s.line(&b, s.summary(len(rows)))
	s.line(&b, "")
	table := [][columns]string{titles}
	for i := range page {
		table = append(table, page[i].cells())
	}
	table[0][s.by] += map[bool]string{false: "*", true: "^"}[s.reverse]
	var width [columns]int
	for _, c := range table {
		for i := range c {
			width[i] = max(width[i], utf8.RuneCountInString(c[i]))
		}
	}
	for n, c := range table {
		var line strings.Builder
		for i := range c {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(c[i]))
			if column(i) == byHost || column(i) == byState {
				line.WriteString(c[i] + pad + "  ")
			} else {
				line.WriteString(pad + c[i] + "  ")
			}
		}
		if n == 0 {
			line.WriteString("DOES")
		} else {
			line.WriteString(page[n-1].does)
		}
		s.line(&b, line.String())
	}
	for n := len(table) - 1; n < s.page(); n++ {
		s.line(&b, "")
	}
	b.WriteString(cut(s.hint(), s.width))
	return b.String()
}

// line writes a line of the screen.
func (s *screen) line(b *strings.Builder, text string) {
	b.WriteString(cut(oneLine(text), s.width) + "\n")
}

// cut makes a text fit into a line.
func cut(text string, width int) string {
	if r := []rune(text); len(r) > width {
		return string(r[:max(0, width)])
	}
	return text
}

// summary is the first line: the jobs, and what is wrong with them.
func (s *screen) summary(rows int) string {
	states := make(map[string]int)
	for i := range s.rows {
		states[s.rows[i].state]++
	}
	var list []string
	for _, j := range s.last.Jobs {
		text := "job " + j.Name
		if j.Deadlock != nil {
			text = fmt.Sprintf("PROBABLE DEADLOCK for %s of job %s", ago(j.Deadlock.For), j.Name)
		}
		for k := range j.Sites {
			if p := j.Sites[k].Problem; p != "" {
				text += " (" + j.Sites[k].Label() + ": " + p + ")"
			}
		}
		list = append(list, text)
	}
	if len(list) == 0 {
		list = []string{"no job any more"}
	}
	var counts []string
	for _, name := range []string{"starting", "init", "running", "blocked", "silent", "finished", "ended", "unknown"} {
		if n := states[name]; n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, name))
		}
	}
	text := strings.Join(list, ", ") + ": " + strings.Join(counts, ", ")
	if rows != len(s.rows) {
		text += fmt.Sprintf("; %d shown", rows)
	}
	if !s.at.IsZero() {
		text = s.at.Format(time.TimeOnly) + "  " + text
	}
	return text
}

// hint is the last line.
func (s *screen) hint() string {
	switch {
	case s.typing:
		return "show rows with: " + s.filter + "_   (Enter, or Esc for all)"
	case s.paused:
		return "paused: p goes on, q quits"
	case s.filter != "":
		return "rows with \"" + s.filter + "\"   / another filter (Esc there: all)  s sort  r reverse  p pause  q quit"
	}
	return "s sort by the next column  r reverse  / filter  p pause  arrows scroll  q quit"
}

// isTerminal reports whether all of these are terminals.
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
