package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"text/tabwriter"
)

// print writes a result as a table: a column per contender, and for each other
// one how many times better ours is.
func (r result) print(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%s, %s, %d procs\n", r.Benchmark, r.Unit, r.Procs)
	fmt.Fprintf(t, "%s\t", cmp.Or(benchmarks[r.Benchmark].axis, "bytes"))
	for _, name := range r.names {
		fmt.Fprintf(t, "%s\t", name)
		if name != ours {
			fmt.Fprint(t, "ratio\t")
		}
	}
	fmt.Fprintln(t)
	for _, row := range r.Rows {
		fmt.Fprintf(t, "%s\t", sizeText(row.Size))
		for _, name := range r.names {
			fmt.Fprintf(t, "%.4g\t", row.Values[name])
			if name != ours {
				fmt.Fprintf(t, "%.2fx\t", row.Ratios[name])
			}
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush() // w is standard output: nobody is left to be told
	fmt.Fprintln(w)
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

// printJSON writes all results with what is needed to read them.
func printJSON(w io.Writer, o options, results []result) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(map[string]any{
		"cpus": runtime.NumCPU(), "transport": o.transport, "path": o.path, "procs": o.ranks, "resume": o.resume,
		"repeat": o.repeat, "seconds": o.seconds, "results": results,
	})
}
