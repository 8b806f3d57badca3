package config

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Severity tells whether a job can run despite a Diagnostic.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // the job cannot run
	Warning Severity = "warning" // the job can run, but the operator should check it
)

// Diagnostic is one fault of a job file: where it is, what is wrong, and what to write instead.
type Diagnostic struct {
	Severity Severity `json:"severity"`
	Pos               // only File, or empty, if the fault has no position
	Problem  string   `json:"problem"`          // what is wrong, one line
	Remedy   string   `json:"remedy,omitempty"` // what to do or to write instead, one line
	Source   string   `json:"source,omitempty"` // the line at Pos, without its end
	Machine  bool     `json:"-"`                // it is about this machine, not the file: another machine may not have the fault
}

// Error returns position, problem and remedy on one line.
func (d Diagnostic) Error() string {
	var b strings.Builder
	if d.Pos.File != "" {
		fmt.Fprintf(&b, "%s: ", d.Pos)
	}
	b.WriteString(d.Problem)
	if d.Remedy != "" {
		fmt.Fprintf(&b, "; %s", d.Remedy)
	}
	return b.String()
}

// Diagnostics are the faults of one file, in file order.
type Diagnostics []Diagnostic

// HasErrors reports whether one of the diagnostics is an Error.
func (ds Diagnostics) HasErrors() bool {
	return slices.ContainsFunc(ds, func(d Diagnostic) bool { return d.Severity == Error })
}

// OfMachine reports whether there are errors and all of the errors are about this machine.
func (ds Diagnostics) OfMachine() bool {
	return ds.HasErrors() && !slices.ContainsFunc(ds, func(d Diagnostic) bool { return d.Severity == Error && !d.Machine })
}

// Err returns nil if there are no errors, and otherwise an error with one line for each error.
func (ds Diagnostics) Err() error {
	var lines []string
	for _, d := range ds {
		if d.Severity == Error {
			lines = append(lines, d.Error())
		}
	}
	if lines == nil {
		return nil
	}
	return fmt.Errorf("%s", strings.Join(lines, "\n"))
}

// The colours of a terminal.
const (
	red    = "\x1b[1;31m"
	yellow = "\x1b[1;33m"
	bold   = "\x1b[1m"
	plain  = "\x1b[0m"
)

// Limits for WriteText: maximum number of faults, and maximum length of a source line.
const (
	maxShown  = 50
	maxSource = 160 // characters
	leadIn    = 60  // characters shown before the fault in a longer line
)

// maxJSONSource is the longest source line for WriteJSON, in bytes: longer ones are left
// out.
const maxJSONSource = 4 << 10

// WriteText writes the faults for people, in a form that hcl's DiagnosticWriter does not offer: a
// line with position and problem, the source line, an underline, and the remedy. If there are many
// faults it writes only the first ones and the number of the rest.
func (ds Diagnostics) WriteText(w io.Writer, color bool) error {
	for i, d := range ds {
		sep := "\n"
		if i == maxShown {
			_, err := fmt.Fprintf(w, "\n%d more; correct these first, or see all with -json\n", len(ds)-i)
			return err
		}
		if i == 0 {
			sep = ""
		}
		if _, err := io.WriteString(w, sep+d.text(color)); err != nil {
			return err
		}
	}
	return nil
}

func (d Diagnostic) text(color bool) string {
	paint := func(code, s string) string {
		if !color {
			return s
		}
		return code + s + plain
	}
	tone := red
	if d.Severity == Warning {
		tone = yellow
	}
	var b strings.Builder
	if d.Pos.File != "" {
		fmt.Fprintf(&b, "%s: ", paint(bold, d.Pos.String()))
	}
	fmt.Fprintf(&b, "%s %s\n", paint(tone, string(d.Severity)+":"), d.Problem)
	margin := "  "
	if d.Source != "" {
		d = d.cut()
		line := fmt.Sprintf("%5d | ", d.Pos.Line)
		margin = strings.Repeat(" ", len(line)-2)
		blank, carets := d.underline()
		fmt.Fprintf(&b, "%s%s\n%s| %s%s\n", line, d.Source, margin, blank, paint(tone, carets))
	}
	if d.Remedy != "" {
		fmt.Fprintf(&b, "%s= %s\n", margin, d.Remedy)
	}
	return b.String()
}

// cut removes what is far from the fault in a long source line.
func (d Diagnostic) cut() Diagnostic {
	line := []rune(d.Source)
	if len(line) <= maxSource {
		return d
	}
	const dots = "..."
	first := min(max(0, d.Pos.Column-1-leadIn), len(line)-maxSource)
	last := first + maxSource
	d.Source = string(line[first:last])
	d.Pos.Column -= first
	d.Pos.EndColumn = min(d.Pos.EndColumn-first, maxSource+1)
	if first > 0 {
		d.Source = dots + d.Source
		d.Pos.Column += len(dots)
		d.Pos.EndColumn += len(dots)
	}
	if last < len(line) {
		d.Source += dots
	}
	return d
}

// underline returns blanks up to the fault and carets below it. It keeps tabs, so that it
// fits any tab width.
func (d Diagnostic) underline() (blank, carets string) {
	var b strings.Builder
	column := 1
	for _, r := range d.Source {
		switch {
		case column >= d.Pos.Column:
		case r == '\t':
			b.WriteByte('\t')
		default:
			b.WriteByte(' ')
		}
		column++
	}
	end := min(d.Pos.EndColumn, column)
	return b.String(), strings.Repeat("^", max(1, end-d.Pos.Column))
}

// WriteJSON writes the faults as one JSON array, an object for each.
func (ds Diagnostics) WriteJSON(w io.Writer) error {
	out := append(Diagnostics{}, ds...)
	for i, d := range out {
		if len(d.Source) > maxJSONSource {
			out[i].Source = ""
		}
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(out)
}
