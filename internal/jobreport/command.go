package jobreport

import (
	_ "embed"
	"fmt"
	"io"
	"strings"

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
)

// hidden stands in a report for what may be secret in the job file.
const hidden = "…"

// Command returns impi-node report.
func Command() *cmdline.Command {
	command := func(verb string, files int, wants string) *cmdline.Command {
		c := &cmdline.Command{Name: verb, Args: cmdline.File, Flags: cmdline.NewFlags(), Check: cmdline.ExactArgs(files, wants)}
		asJSON := c.Flags.Bool("json", false, "")
		c.Run = func(args []string, out, _ io.Writer) (int, error) {
			var read []*Report
			for _, path := range args {
				r, err := Read(path)
				if err != nil {
					return statusProblem, err
				}
				read = append(read, r)
			}
			return statusOK, print(verb, read, *asJSON, out)
		}
		return c
	}
	c := &cmdline.Command{Name: "report", Help: Help, Commands: []*cmdline.Command{command("diff", 2, "two files"), command("show", 1, "one file")}}
	c.Run = c.NeedsCommand
	return c
}

func print(verb string, read []*Report, asJSON bool, w io.Writer) error {
	var what any = read[0]
	switch {
	case verb == "diff" && !asJSON:
		if err := Text(w, Compare(read[0], read[1])); err != nil || !strings.Contains(read[0].Config, hidden) || !strings.Contains(read[1].Config, hidden) {
			return err
		}
		_, err := fmt.Fprintln(w, "\nWhat the job files have as … (arguments, env and what else may be secret) is not in reports: it was not compared.")
		return err
	case verb == "diff":
		what = struct {
			Schema      int          `json:"schema"`
			Differences []Difference `json:"differences"`
		}{Schema, Compare(read[0], read[1])}
	case !asJSON:
		return Show(w, read[0])
	}
	return cmdline.WriteJSON(w, what)
}

// Show writes the most important parts of a report for people.
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
