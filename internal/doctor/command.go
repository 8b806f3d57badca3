package doctor

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"text/tabwriter"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/cmdline"
)

// Help is the text of the command's -h.
//
//go:embed help.txt
var Help string

// Exit statuses of the command.
const (
	statusOK    = 0
	statusFault = 1
	statusUsage = 2
)

// Job is a job file for which this machine is to be fit.
type Job struct {
	Load  func(path string) *config.Job // shows the file's faults itself, and returns nil for any
	Local func(netip.Addr) bool         // this machine has the address
}

// Run runs the command and returns its exit status.
func Run(args []string, out, errs io.Writer, j Job) int { return here().run(args, out, errs, j) }

func (m *machine) run(args []string, out, errs io.Writer, j Job) int {
	f := flag.NewFlagSet("doctor", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	asJSON := f.Bool("json", false, "")
	words, err := cmdline.ParseMixed(f, args)
	if err == nil && len(words) > 1 {
		err = errors.New("give one job file, or none")
	}
	if err != nil {
		fmt.Fprintf(errs, "impi-node doctor: %v\nTry: impi-node help doctor\n", err)
		return statusUsage
	}
	list := m.checks()
	if len(words) == 1 {
		job := j.Load(words[0])
		if job == nil {
			return statusUsage
		}
		list = append(list, reach(context.Background(), job, j.Local)...)
	}
	if *asJSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		err = e.Encode(list)
	} else {
		err = write(out, list)
	}
	for _, c := range list {
		if err != nil || c.State == Fail {
			return statusFault
		}
	}
	return statusOK
}

func write(out io.Writer, list []Check) error {
	t := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for _, c := range list {
		fmt.Fprintf(t, "%s\t%s\t%s\n", c.State, c.Name, c.Found)
		if c.Remedy != "" {
			fmt.Fprintf(t, "\t\t= %s\n", c.Remedy)
		}
	}
	return t.Flush()
}
