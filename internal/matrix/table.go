package matrix

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// marks are the verdicts in a table.
var marks = map[Verdict]string{OK: "ok", Ended: "ends", Failed: "**failed**", Unsupported: "–"}

// Table writes results as Markdown: a row for each transport, data plane, mode
// and fault, a column for each program, and why cells are empty or failed.
func Table(w io.Writer, results []Result) {
	fmt.Fprintf(w, "| transport | data plane | mode | fault | %s |\n", strings.Join(Programs, " | "))
	fmt.Fprintf(w, "|---|---|---|---|%s\n", strings.Repeat("---|", len(Programs)))
	var notes []string
	for _, row := range rows(results) {
		first := row[0]
		fmt.Fprintf(w, "| %s | %s | %s | %s |", first.Transport, first.Plane, first.Mode, first.Fault)
		for _, program := range Programs {
			i := slices.IndexFunc(row, func(r Result) bool { return r.Program == program })
			if i < 0 {
				fmt.Fprint(w, " not run |")
				continue
			}
			fmt.Fprintf(w, " %s |", symbol(row[i].Verdict, row[i].Reason, row[i].String(), &notes))
		}
		fmt.Fprintln(w)
	}
	if len(notes) > 0 {
		fmt.Fprintln(w)
	}
	for i, n := range notes {
		fmt.Fprintf(w, "%d. %s\n", i+1, n)
	}
}

// symbol returns the text of the cell called name; each reason becomes a note once.
func symbol(v Verdict, reason, name string, notes *[]string) string {
	if reason == "" {
		return marks[v]
	}
	reason = strings.Join(strings.Fields(reason), " ")
	if v == Failed {
		reason = name + ": " + reason
	}
	i := slices.Index(*notes, reason)
	if i < 0 {
		i = len(*notes)
		*notes = append(*notes, reason)
	}
	return fmt.Sprintf("%s (%d)", marks[v], i+1)
}

// rows groups the results that differ only in their program.
func rows(results []Result) (all [][]Result) {
	key := func(r Result) Cell { c := r.Cell; c.Program = ""; return c }
	for _, r := range results {
		i := slices.IndexFunc(all, func(row []Result) bool { return key(row[0]) == key(r) })
		if i < 0 {
			all = append(all, []Result{r})
			continue
		}
		all[i] = append(all[i], r)
	}
	return all
}
