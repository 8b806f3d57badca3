package measure

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/openimpi/impi/internal/performance"
	"github.com/openimpi/impi/internal/provenance"
)

// Write writes the tables as Markdown.
func (r *Report) Write(w io.Writer) {
	text := fmt.Sprintf("Made by `make wan` on %s. Machine: %s, %d cores, Linux %s, %s; %s; load %s at the start. ", provenance.Dates([]provenance.Stamp{r.Made}),
		r.Machine.CPU, r.Machine.Cores, r.Machine.Kernel, r.Machine.Go, strings.Join(r.Machine.Peers, ", "), r.Machine.Load)
	buffers := "as the kernel has them"
	if r.Buffers > 0 {
		buffers = fmt.Sprintf("up to %d bytes", r.Buffers)
	}
	text += fmt.Sprintf("Lines of %g Mb/s, buffers of TCP %s.", float64(r.Rate)/1e6, buffers)
	if len(r.Cells) > 0 {
		text += fmt.Sprintf(" Streams are measured for %v, after %v.", r.Time, r.Omit)
	}
	for _, transport := range slices.Sorted(maps.Keys(r.Settings)) {
		text += fmt.Sprintf(" Of %s: `%s`.", transport, strings.Join(r.Settings[transport], "`, `"))
	}
	if len(r.Sysctl) > 0 {
		text += fmt.Sprintf(" At the sites: `%s`.", strings.Join(r.Sysctl, "`, `"))
	}
	if r.Times > 1 {
		text += fmt.Sprintf(" Each stream is the median of %d.", r.Times)
	}
	if r.Compress != "" {
		text += fmt.Sprintf(" Our routes have `compress { %s }`.", r.Compress)
	}
	if r.Data != "" {
		text += fmt.Sprintf(" Our streams are of %s.", r.Data)
	}
	if r.Progress != "" {
		text += fmt.Sprintf(" Our procs have `progress = %q`.", r.Progress)
	}
	fmt.Fprintln(w, performance.Wrap(text, ""))
	if len(r.Cells) > 0 {
		fmt.Fprint(w, "\n### Stream, Mb/s of payload\n\n")
		r.table(w, Stream, func(v float64) string { return fmt.Sprintf("%.1f", v) })
		fmt.Fprint(w, "\n### Round trip of 8 bytes, ms\n\n")
		r.table(w, Latency, func(v float64) string { return fmt.Sprintf("%.2f", v) })
	}
	if len(r.Collectives) > 0 {
		fmt.Fprintf(w, "\n### Collective operations at a round trip of %v, ms, and how many times the bound\n\n", r.Collectives[0].RTT)
		r.collectiveTable(w)
	}
	r.reasons(w)
}

func (r *Report) table(w io.Writer, what string, text func(float64) string) {
	var names []string
	for _, name := range r.Columns {
		if slices.ContainsFunc(r.Cells, func(c Cell) bool { return c.Column == name && c.What == what }) {
			names = append(names, name)
		}
	}
	fmt.Fprintf(w, "| RTT | loss | %s |\n|--:|--:|%s\n", strings.Join(names, " | "), strings.Repeat("--:|", len(names)))
	var last time.Duration
	for _, row := range r.rows() {
		rtt := ""
		if row.RTT != last {
			rtt, last = row.RTT.String(), row.RTT
		}
		fmt.Fprintf(w, "| %s | %s |", rtt, percent(row.Loss))
		for _, name := range names {
			i := slices.IndexFunc(r.Cells, func(c Cell) bool { return c.Row == row && c.Column == name && c.What == what })
			switch {
			case i < 0:
				fmt.Fprint(w, " |")
			case r.Cells[i].Why != "":
				fmt.Fprint(w, " none |")
			default:
				fmt.Fprintf(w, " %s |", text(r.Cells[i].Value))
			}
		}
		fmt.Fprintln(w)
	}
}

func (r *Report) rows() (rows []Row) {
	for _, c := range r.Cells {
		if !slices.Contains(rows, c.Row) {
			rows = append(rows, c.Row)
		}
	}
	return rows
}

func (r *Report) reasons(w io.Writer) {
	var lines []string
	for _, c := range r.Cells {
		if c.Why != "" {
			lines = append(lines, fmt.Sprintf("* RTT %v, loss %s, %s, %s: %s", c.RTT, percent(c.Loss), c.Column, c.What, c.Why[:min(len(c.Why), 300)]))
		}
	}
	for _, c := range r.Collectives {
		if c.Why != "" {
			lines = append(lines, fmt.Sprintf("* %d sites, %s, %s of %d bytes: %s", c.Sites, c.Column, c.Operation, c.Bytes, c.Why[:min(len(c.Why), 300)]))
		}
	}
	for i, line := range lines {
		if i == 0 {
			fmt.Fprint(w, "\nNone:\n\n")
		}
		fmt.Fprintln(w, performance.Wrap(line, "  "))
	}
}
