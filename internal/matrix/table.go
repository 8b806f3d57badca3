package matrix

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

var marks = map[Verdict]string{OK: "ok", Ended: "ends", Failed: "**failed**", Unsupported: "–"}

// Table writes results as Markdown: a row for each transport, data plane, mode
// and fault, a column for each program, and why cells are empty or failed.
func Table(w io.Writer, results []Result) {
	tableHead(w, "| transport | data plane | mode | fault |", Programs)
	var notes []string
	for _, row := range rows(results) {
		first := row[0]
		fmt.Fprintf(w, "| %s | %s | %s | %s |", first.Transport, first.Plane, first.Mode, first.Fault)
		tableCells(w, Programs, &notes, func(program string) (v Verdict, reason, name string, ran bool) {
			i := slices.IndexFunc(row, func(r Result) bool { return r.Program == program })
			if i < 0 {
				return "", "", "", lacks(first.Transport, program)
			}
			return row[i].Verdict, row[i].Reason, row[i].String(), true
		})
	}
	tableNotes(w, notes)
}

func tableHead(w io.Writer, first string, programs []string) {
	fmt.Fprintf(w, "%s %s |\n|%s\n", first, strings.Join(programs, " | "), strings.Repeat("---|", strings.Count(first, "|")-1+len(programs)))
}

func tableCells(w io.Writer, programs []string, notes *[]string, of func(program string) (v Verdict, reason, name string, ran bool)) {
	for _, program := range programs {
		text := "not run"
		if v, reason, name, ran := of(program); ran {
			text = symbol(v, reason, name, notes)
		}
		fmt.Fprintf(w, " %s |", text)
	}
	fmt.Fprintln(w)
}

func tableNotes(w io.Writer, notes []string) {
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
