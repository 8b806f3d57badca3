package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/sim/scale"
)

// size reads "CLIENTS:PROCS".
func (o *options) size(s string) error {
	n, err := fmt.Sscanf(s, "%d:%d", &o.clients, &o.procs)
	if err != nil || n != 2 || o.clients < 1 || o.clients > wire.MaxClients || o.procs < o.clients {
		return fmt.Errorf("-scale %q: write CLIENTS:PROCS, as 32:100000; at most %d clients, each with a proc", s, wire.MaxClients)
	}
	return nil
}

// runScale runs a large job and prints what it costs.
func (o *options) runScale(out, report io.Writer) int {
	begun := time.Now()
	r, err := scale.Run(o.clients, 1, o.procs, func(step string) {
		fmt.Fprintf(report, "%v: %s is done\n", time.Since(begun).Round(time.Second), step)
	})
	if err != nil {
		fmt.Fprintln(report, "impi-sim:", err)
		return exitFailed
	}
	if o.json {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		_ = e.Encode(r) // a closed output is the reader's wish
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
