package firewall

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"text/tabwriter"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/cmdline"
)

// Help is the text of the command's -h.
//
//go:embed help.txt
var Help string

// Command returns the command impi-node ports, which prints the rules of a job. load reads a job
// file whose hosts are on other machines; it prints the faults of the file itself, and returns nil
// then.
func Command(load func(path string) *config.Job) *cmdline.Command {
	c := &cmdline.Command{Name: "ports", Help: Help, Args: cmdline.File, Flags: cmdline.NewFlags()}
	asJSON := c.Flags.Bool("json", false, "")
	nft := c.Flags.Bool("nft", false, "")
	c.Check = func(args []string) error {
		if *asJSON && *nft {
			return errors.New("-json and -nft exclude each other")
		}
		return cmdline.ExactArgs(1, "one job file")(args)
	}
	c.Run = func(args []string, out, _ io.Writer) (int, error) {
		job := load(args[0])
		if job == nil {
			return cmdline.StatusUsage, nil
		}
		rules := Rules(job)
		switch {
		case *asJSON:
			return 0, cmdline.WriteJSON(out, append([]Rule{}, rules...))
		case *nft:
			return 0, writeNFT(out, rules)
		}
		return 0, writeText(out, job, rules)
	}
	return c
}

func writeText(out io.Writer, job *config.Job, rules []Rule) error {
	if len(rules) == 0 {
		_, err := fmt.Fprintln(out, "nothing has to come in: all hosts are on one machine, or the file does not have the other sites")
		return err
	}
	t := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	at := ""
	for i := range rules {
		r := &rules[i]
		if here := place(r); here != at {
			at = here
			_ = t.Flush()
			fmt.Fprintf(out, "%s\n", here)
		}
		fmt.Fprintf(t, "  %s %s\t%s\tfrom %s\n", r.Proto, r.Ports, r.For, few(r.From))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	said := make(map[string]bool)
	for i := range rules {
		if r := &rules[i]; r.Remedy != "" && !said[r.For+r.Remedy] {
			said[r.For+r.Remedy] = true
			fmt.Fprintf(out, "%s: %s\n", r.For, r.Remedy)
		}
	}
	if !job.Complete {
		fmt.Fprintln(out, "the file may not have all sites of the job: those that it does not have need the same from here, and open theirs")
	}
	return nil
}

// few lists names; of many names only the first ones.
func few(names []string) string {
	const most = 8
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s, and %d more (-json has all)", strings.Join(names[:most-1], ", "), len(names)-most+1)
}

func place(r *Rule) string {
	if r.Site == "" {
		return r.Host
	}
	return "site " + r.Site + ", host " + r.Host
}

// writeNFT writes rules for an input chain of nftables; what nftables cannot express is a comment.
func writeNFT(out io.Writer, rules []Rule) error {
	at := ""
	for i := range rules {
		r := &rules[i]
		if here := place(r); here != at {
			at = here
			if _, err := fmt.Fprintf(out, "# %s\n", here); err != nil {
				return err
			}
		}
		for _, line := range r.nft() {
			if _, err := fmt.Fprintln(out, line); err != nil {
				return err
			}
		}
	}
	return nil
}

// nft returns the rule's lines, one for each family of addresses.
func (r *Rule) nft() (lines []string) {
	if r.Ports == anyPort || r.Proto == "unknown" { // a rule would open ports that have nothing to do with the job
		return append(lines, fmt.Sprintf("# %s: %s %s from %s: %s", r.For, r.Proto, r.Ports, strings.Join(r.From, ", "), r.Remedy))
	}
	dport := " " + r.Proto + " dport " + r.Ports
	var v4, v6, unknown []string
	for _, f := range r.From {
		switch ip, err := netip.ParseAddr(f); {
		case err != nil:
			unknown = append(unknown, f)
		case ip.Is4():
			v4 = append(v4, f)
		default:
			v6 = append(v6, f)
		}
	}
	for _, x := range []struct {
		family string
		from   []string
	}{{"ip", v4}, {"ip6", v6}} {
		if len(x.from) > 0 {
			lines = append(lines, fmt.Sprintf("add rule inet filter input %s saddr { %s }%s accept comment %q", x.family, strings.Join(x.from, ", "), dport, r.For))
		}
	}
	if len(unknown) > 0 {
		lines = append(lines, fmt.Sprintf("# add rule inet filter input ip saddr { addresses of %s }%s accept comment %q", strings.Join(unknown, ", "), dport, r.For))
	}
	if r.Remedy != "" {
		lines = append(lines, "# "+r.Remedy)
	}
	return lines
}
