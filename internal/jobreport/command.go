package jobreport

import (
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"io"

	"github.com/openimpi/impi/internal/cmdline"
)

// Help is the text of impi-node report -h.
//
//go:embed help.txt
var Help string

// Exit statuses of the command.
const (
	statusOK      = 0
	statusProblem = 1
	statusUsage   = 2
)

// Run is the command impi-node report. It returns the exit status.
func Run(args []string, stdout, stderr io.Writer) int {
	usage := func(format string, a ...any) int {
		fmt.Fprintf(stderr, "impi-node report: "+format+"\nTry: impi-node report -h\n", a...)
		return statusUsage
	}
	f := flag.NewFlagSet("report", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	asJSON := f.Bool("json", false, "")
	rest, err := cmdline.ParseMixed(f, args)
	switch {
	case err == flag.ErrHelp:
		_, _ = io.WriteString(stdout, Help)
		return statusOK
	case err != nil:
		return usage("%v", err)
	case len(rest) == 3 && rest[0] == "diff", len(rest) == 2 && rest[0] == "show":
	case len(rest) > 0 && rest[0] != "diff" && rest[0] != "show":
		return usage("%q: there are diff and show", rest[0])
	default:
		return usage("want diff and two files, or show and one")
	}
	var read []*Report
	for _, path := range rest[1:] {
		r, err := Read(path)
		if err != nil {
			fmt.Fprintf(stderr, "impi-node report: %v\n", err)
			return statusProblem
		}
		read = append(read, r)
	}
	if err := print(rest[0], read, *asJSON, stdout); err != nil {
		fmt.Fprintf(stderr, "impi-node report: %v\n", err)
		return statusProblem
	}
	return statusOK
}

func print(verb string, read []*Report, asJSON bool, w io.Writer) error {
	var what any = read[0]
	switch {
	case verb == "diff" && !asJSON:
		return Text(w, Compare(read[0], read[1]))
	case verb == "diff":
		what = struct {
			Schema      int          `json:"schema"`
			Differences []Difference `json:"differences"`
		}{Schema, Compare(read[0], read[1])}
	case !asJSON:
		return Show(w, read[0])
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(what)
}

// Show writes the most important of a report for people.
func Show(w io.Writer, r *Report) error {
	how := "in order"
	if r.Failure != "" {
		how = r.Failure
	}
	whole := "the whole job"
	if !r.Whole {
		whole = "a part of the job, see the sites in the file"
	}
	fmt.Fprintf(w, "%s, %v from %s, ended: %s (exit status %d)\nby site %s, about %s\n\n",
		printable(r.Job), r.Ended.Sub(r.Began).Round(1e6), clock(r.Began), printable(how), r.Status, printable(r.By), whole)
	for i, c := range r.Calls {
		if i == mostLines {
			fmt.Fprintf(w, "and %d more calls\n", len(r.Calls)-i)
			break
		}
		fmt.Fprintf(w, "%-28s %10d calls  %12s\n", printable(c.Name), c.Calls, seconds(c.Time))
	}
	for i, x := range r.Waits {
		if i == mostLines {
			break
		}
		fmt.Fprintf(w, "%s waited %s for %s (%s)\n", printable(r.who(x.From)), seconds(x.Time), printable(r.who(x.For)), printable(x.Cause))
	}
	_, err := fmt.Fprintln(w)
	return err
}
