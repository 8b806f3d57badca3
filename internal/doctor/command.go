package doctor

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
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
)

// Job is a job file that this machine is checked for.
type Job struct {
	Load  func(path string) (*config.Job, config.Diagnostics) // as config.Load
	Local func(netip.Addr) bool                               // this machine has the address
}

// Command returns impi-node doctor. builtins are the built-in transports, which remedies name;
// open is called before a job file is read.
func Command(builtins []config.Builtin, open func() (Job, error)) *cmdline.Command {
	m := here()
	m.builtins = builtins
	return m.command(open)
}

func (m *machine) command(open func() (Job, error)) *cmdline.Command {
	c := &cmdline.Command{Name: "doctor", Help: Help, Args: cmdline.File, Flags: cmdline.NewFlags()}
	asJSON := c.Flags.Bool("json", false, "")
	c.Check = func(args []string) error {
		if len(args) > 1 {
			return errors.New("give one job file, or none")
		}
		return nil
	}
	c.Run = func(args []string, out, _ io.Writer) (int, error) {
		if len(args) == 0 {
			return conclude(m.checks(leastProcs), *asJSON, out)
		}
		j, err := open()
		if err != nil {
			return cmdline.StatusUsage, err
		}
		job, found := j.Load(args[0])
		if found.HasErrors() {
			_, err = conclude(append(m.checks(leastProcs), fileFaults(found)...), *asJSON, out)
			return cmdline.StatusUsage, err
		}
		list := append(m.checks(procsHere(job, j.Local), shimsHere(job, j.Local)...), fileFaults(found)...)
		return conclude(append(list, reach(context.Background(), job, j.Local)...), *asJSON, out)
	}
	return c
}

// fileFaults are the checks of a job file that have found something.
func fileFaults(found config.Diagnostics) (list []Check) {
	for _, d := range found {
		c := Check{Name: "job file", State: Fail, Found: d.Problem, Remedy: d.Remedy}
		if d.Severity == config.Warning {
			c.State = Warn
		}
		if d.File != "" {
			c.Found = d.Pos.String() + ": " + c.Found
		}
		list = append(list, c)
	}
	return list
}

// procsHere is how many procs the nodes of a job run on this machine, or leastProcs if those are
// fewer.
func procsHere(job *config.Job, local func(netip.Addr) bool) (n int) {
	for i := range job.Sites {
		for _, h := range job.Sites[i].HostsHere(local) {
			n += job.Sites[i].Hosts[h].Procs
		}
	}
	return max(n, leastProcs)
}

func conclude(list []Check, asJSON bool, out io.Writer) (status int, err error) {
	if asJSON {
		err = cmdline.WriteJSON(out, list)
	} else {
		err = write(out, list)
	}
	if err != nil || slices.ContainsFunc(list, func(c Check) bool { return c.State == Fail }) {
		return statusFault, err
	}
	return statusOK, nil
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
