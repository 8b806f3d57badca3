package links

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/openimpi/impi/internal/quantity"
)

// table is rows whose columns are as wide as they need to be. text/tabwriter does not do: there a
// row with fewer cells ends the columns after it, and later rows are aligned anew.
type table struct{ rows [][]string }

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) write(w io.Writer, indent string) {
	var width []int
	for _, r := range t.rows {
		for i, c := range r {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	for _, r := range t.rows {
		line := indent
		for i, c := range r {
			line += c + strings.Repeat(" ", width[i]-utf8.RuneCountInString(c)+2)
		}
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}

// Duration formats a short time with two or three digits.
func Duration(d time.Duration) string {
	switch {
	case d < 10*time.Microsecond:
		return fmt.Sprintf("%.2f us", float64(d)/1e3)
	case d < 100*time.Microsecond:
		return fmt.Sprintf("%.1f us", float64(d)/1e3)
	case d < time.Millisecond:
		return fmt.Sprintf("%.0f us", float64(d)/1e3)
	case d < time.Second:
		return fmt.Sprintf("%.1f ms", float64(d)/1e6)
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// ValueOf returns a number that may be unknown, which then counts as 0.
func ValueOf(n *uint64) uint64 {
	if n == nil {
		return 0
	}
	return *n
}

func count(n *uint64, unit string) string {
	switch {
	case n == nil:
		return "?"
	case unit == "":
		return fmt.Sprint(*n)
	}
	return quantity.Text(float64(*n), unit)
}

func both(there, back *uint64, unit string) string {
	if there == nil && back == nil {
		return "-"
	}
	return count(there, unit) + " / " + count(back, unit)
}

func age(at, now time.Time) string {
	d := now.Sub(at)
	switch {
	case at.IsZero():
		return ""
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	}
	return fmt.Sprintf("%d h", int(d.Hours()))
}

// list is "a, b and c".
func list(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
