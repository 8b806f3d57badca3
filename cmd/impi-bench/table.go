package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"text/tabwriter"

	"github.com/openimpi/impi/internal/cmdline"
)

// print writes a result as a table: a column per contender, and for each other
// one how many times better ours is.
func (r result) print(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%s, %s, %d procs", r.Benchmark, r.Unit, r.Procs)
	if r.Base != "" {
		fmt.Fprintf(w, "; above 1.00x is better than %s alone", r.Base)
	}
	fmt.Fprintln(w)
	fmt.Fprintf(t, "%s\t", cmp.Or(r.Axis, "bytes"))
	for _, name := range r.names {
		fmt.Fprintf(t, "%s\t", name)
		if name != origin(r.Base) {
			fmt.Fprint(t, "ratio\t")
		}
		if r.paired(name) {
			fmt.Fprint(t, "95 %\t")
		}
	}
	fmt.Fprintln(t)
	for _, row := range r.Rows {
		fmt.Fprintf(t, "%s\t", sizeText(row.Size))
		for _, name := range r.names {
			fmt.Fprintf(t, "%.4g\t", row.Values[name])
			if name != origin(r.Base) {
				r.printRatio(t, row, name)
			}
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush() // w is standard output: an error cannot be reported
	fmt.Fprintln(w)
}

// printRatio writes how many times better ours is; where there are intervals, with a digit more and
// the interval.
func (r result) printRatio(w io.Writer, row row, name string) {
	in, ok := row.Intervals[name]
	switch {
	case ok:
		fmt.Fprintf(w, "%.3fx\t%.3f-%.3f\t", row.Ratios[name], in[0], in[1])
	case r.paired(name):
		fmt.Fprintf(w, "%.2fx\t\t", row.Ratios[name])
	default:
		fmt.Fprintf(w, "%.2fx\t", row.Ratios[name])
	}
}

func (r result) paired(name string) bool {
	return slices.ContainsFunc(r.Rows, func(row row) bool { _, ok := row.Intervals[name]; return ok })
}

func sizeText(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return strconv.Itoa(n>>20) + "M"
	case n >= 1<<10 && n%(1<<10) == 0:
		return strconv.Itoa(n>>10) + "K"
	}
	return strconv.Itoa(n)
}

func printJSON(w io.Writer, o options, results []result) error {
	return cmdline.WriteJSON(w, map[string]any{
		"cpus": runtime.NumCPU(), "transport": o.transport, "path": o.path, "procs": o.ranks, "resume": o.resume,
		"repeat": o.repeat, "rounds": o.rounds, "seconds": o.seconds, "results": results,
	})
}
