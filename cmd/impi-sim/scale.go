package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/sim/scale"
)

// size reads "CLIENTS:PROCS" and "CLIENTS:HOSTSxPROCS".
func (o *options) size(s string) error {
	var n int
	var err error
	var ok bool
	if strings.Contains(s, "x") {
		n, err = fmt.Sscanf(s, "%d:%dx%d", &o.clients, &o.hosts, &o.procs)
		ok = n == 3 && o.hosts >= 1 && o.procs >= 1 && o.clients >= 1 && o.hosts <= startup.MaxProcs/o.procs/o.clients
	} else {
		n, err = fmt.Sscanf(s, "%d:%d", &o.clients, &o.procs)
		ok = n == 2 && o.procs >= o.clients
	}
	if err != nil || !ok || o.clients < 1 || o.clients > wire.MaxClients {
		return fmt.Errorf("-scale %q: write CLIENTS:PROCS, as 32:100000, or CLIENTS:HOSTSxPROCS, as 4:1024x128; at most %d clients, each with a proc, and %d procs",
			s, wire.MaxClients, startup.MaxProcs)
	}
	return nil
}

// fewerHosts are the numbers of hosts that are shown before the one that was asked for, so that
// growth can be seen.
var fewerHosts = []int{1, 32, 256, 1024}

func (o *options) runHosts(out, report io.Writer) int {
	var all []scale.HostsReport
	for _, hosts := range append(slices.DeleteFunc(slices.Clone(fewerHosts), func(n int) bool { return n >= o.hosts }), o.hosts) {
		r, err := scale.Hosts(o.clients, hosts, o.procs)
		if err != nil {
			fmt.Fprintf(report, "impi-sim: %d sites of %d hosts: %v\n", o.clients, hosts, err)
			return exitFailed
		}
		fmt.Fprintf(report, "%v: %d hosts are done\n", r.Elapsed.Round(time.Millisecond), hosts)
		all = append(all, r)
	}
	if o.json {
		_ = cmdline.WriteJSON(out, all) // an error means that the reader is gone
		return exitOK
	}
	fmt.Fprintf(out, "%d sites, %d procs on each host; sizes are in bytes\n\n", o.clients, o.procs)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "hosts\tdeep\tmessages\tto a head\tsize\tjob\tfrom the server\tgathered\tjoined\tstarted\tchannels\tjob in a host\tits agent\ttable shared with procs\t")
	for _, r := range all {
		fmt.Fprintf(t, "%d\t%d\t%d\t%d\t%d\t%d\t%d\t%v\t%v\t%v\t%d\t%d\t%d\t%d\t\n", r.Hosts, r.Depth, r.Messages, r.HeadMessages, r.HeadIn, r.Job, r.Server,
			r.Gathered.Round(time.Millisecond), r.Joined.Round(time.Millisecond), r.Started.Round(time.Millisecond), r.Channels, r.JobHeap, r.AgentHeap, r.Table)
	}
	_ = t.Flush()
	return exitOK
}

func (o *options) runScale(out, report io.Writer) int {
	if o.hosts > 0 {
		return o.runHosts(out, report)
	}
	begun := time.Now()
	r, err := scale.Run(o.clients, 1, o.procs, func(step string) {
		fmt.Fprintf(report, "%v: %s is done\n", time.Since(begun).Round(time.Second), step)
	})
	if err != nil {
		fmt.Fprintln(report, "impi-sim:", err)
		return exitFailed
	}
	if o.json {
		_ = cmdline.WriteJSON(out, r) // an error means that the reader is gone
		return exitOK
	}
	fmt.Fprintf(out, "%d clients, %d procs, %d events in %v\n", r.Clients, r.Procs, r.Events, r.Elapsed.Round(time.Second))
	fmt.Fprintf(out, "startup: %v for all of them together; the server sends %d bytes to each client\n", r.Startup.Round(10*time.Millisecond), r.StartupSent)
	fmt.Fprintf(out, "memory:  %d bytes for each proc, its links in the simulator included, and %d of stack\n\n", r.PerProc, r.Stacks)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tbetween sites\tof one site\tbytes\tdeep\tdeep inside\tof procs\tbytes\tto one proc\ttook\t")
	for _, op := range r.Operations {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%v\t\n", op.Name, op.Messages, op.PerSite, op.Bytes, op.FarDepth, op.Depth,
			op.All, op.AllBytes, op.MostBytes, op.Took.Round(time.Millisecond))
	}
	_ = t.Flush()
	return exitOK
}
