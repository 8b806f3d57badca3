package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/cmdline"
)

//go:embed help/startup-usage.txt
var startupUsage string

//go:embed help/startup-examples.txt
var startupExamples string

type startupOptions struct {
	clients, hosts, procs int
	repeat                int
	limit                 time.Duration
	json                  bool
}

// startupWord is both the command and, with a part after it, its processes.
const startupWord = "startup"

func startupCommand() *cmdline.Command { c, _ := newStartup(); return c }

func newStartup() (*cmdline.Command, *startupOptions) {
	o := &startupOptions{}
	c := &cmdline.Command{Name: startupWord, Flags: cmdline.NewFlags(), Check: o.check}
	f := c.Flags
	f.IntVar(&o.clients, "clients", wire.MaxClients, "clients of the job")
	f.IntVar(&o.hosts, "hosts", 1, "hosts of each client")
	f.IntVar(&o.procs, "procs", startup.MaxProcs, "procs of all clients together")
	f.IntVar(&o.repeat, "repeat", 5, "repetitions, of which the median counts")
	f.DurationVar(&o.limit, "limit", time.Minute, "how long one repetition may take")
	f.BoolVar(&o.json, "json", false, "print JSON instead of a table")
	c.Help = withFlags(startupUsage, f, startupExamples)
	c.Run = measured(func(ctx context.Context, out io.Writer) error { return benchStartup(ctx, *o, out) })
	return c, o
}

func (o *startupOptions) check([]string) error {
	switch {
	case o.clients < 1 || o.clients > wire.MaxClients:
		return fmt.Errorf("-clients %d: a job has 1 to %d", o.clients, wire.MaxClients)
	case o.hosts < 1 || o.procs < o.clients*o.hosts || o.procs > startup.MaxProcs:
		return fmt.Errorf("-procs %d: write %d to %d, at least one for each host of each client", o.procs, o.clients*o.hosts, startup.MaxProcs)
	case o.procs%(o.clients*o.hosts) != 0:
		return fmt.Errorf("-procs %d: write a multiple of %d, so that each host has as many", o.procs, o.clients*o.hosts)
	case o.repeat < 1 || o.limit <= 0:
		return errors.New("-repeat and -limit must be positive")
	}
	return nil
}

// startupFigures are the measurements of one repetition, in seconds and bytes.
type startupFigures struct {
	Seconds    float64 `json:"seconds"`
	Server     float64 `json:"server_peak_rss"`
	Everything float64 `json:"peak_rss"`
	Up         float64 `json:"bytes_to_server"`
	Down       float64 `json:"bytes_from_server"`
}

var startupColumns = []struct {
	name, key string
	unit      float64
	of        func(startupFigures) float64
}{
	{"seconds", "seconds", 1, func(f startupFigures) float64 { return f.Seconds }},
	{"server, MB", "server_peak_rss", 1e6, func(f startupFigures) float64 { return f.Server }},
	{"everything, MB", "peak_rss", 1e6, func(f startupFigures) float64 { return f.Everything }},
	{"to server, MB", "bytes_to_server", 1e6, func(f startupFigures) float64 { return f.Up }},
	{"from server, MB", "bytes_from_server", 1e6, func(f startupFigures) float64 { return f.Down }},
}

func benchStartup(ctx context.Context, o startupOptions, w io.Writer) error {
	var runs []startupFigures
	for range o.repeat {
		f, err := o.run(ctx)
		if err != nil {
			return err
		}
		runs = append(runs, f)
	}
	medians, spreads := map[string]float64{}, map[string]float64{}
	for _, c := range startupColumns {
		var v []float64
		for _, f := range runs {
			v = append(v, c.of(f))
		}
		medians[c.key] = median(v)
		spreads[c.key] = (slices.Max(v) - slices.Min(v)) / medians[c.key]
	}
	if o.json {
		return cmdline.WriteJSON(w, map[string]any{
			"benchmark": startupWord, "clients": o.clients, "hosts": o.hosts, "procs": o.procs,
			"repeat": o.repeat, "medians": medians, "spreads": spreads, "runs": runs,
		})
	}
	fmt.Fprintf(w, "startup, %d clients with %d hosts each, %d procs, %d repetitions\n", o.clients, o.hosts, o.procs, o.repeat)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, c := range startupColumns {
		fmt.Fprintf(t, "%s\t%.4g\t± %.0f%%\t\n", c.name, medians[c.key]/c.unit, 100*spreads[c.key])
	}
	return t.Flush()
}

func (o startupOptions) run(ctx context.Context) (f startupFigures, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	dir, err := os.MkdirTemp("", "impi-bench-")
	if err != nil {
		return f, err
	}
	defer os.RemoveAll(dir)
	where := filepath.Join(dir, "server")
	results := make(chan partResult, 2)
	for _, part := range []string{serverPart, clientsPart} {
		go func() {
			r := o.runPart(ctx, part, where)
			if r.err != nil {
				cancel() // the other part waits for this one
			}
			results <- r
		}()
	}
	for range 2 {
		r := <-results
		err = errors.Join(err, r.err)
		f.Everything += float64(r.PeakRSS)
		if r.part == serverPart {
			f.Server = float64(r.PeakRSS)
		} else {
			f.Seconds, f.Up, f.Down = r.Seconds, float64(r.Up), float64(r.Down)
		}
	}
	return f, err
}

// partResult is what one of the two processes reports.
type partResult struct {
	part string
	err  error

	PeakRSS  int64   `json:"peak_rss"`
	Seconds  float64 `json:"seconds"`
	Up, Down int64
}

func (o startupOptions) runPart(ctx context.Context, part, where string) (r partResult) {
	r.part = part
	self, err := os.Executable()
	if err != nil {
		r.err = err
		return r
	}
	cmd := exec.CommandContext(ctx, self, startupWord, part, where, fmt.Sprint(o.clients), fmt.Sprint(o.hosts), fmt.Sprint(o.procs))
	var errs strings.Builder
	cmd.Stderr = &errs
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		r.err = fmt.Errorf("%s: %w\n%s", part, err, errs.String())
		return r
	}
	if err := json.Unmarshal(out, &r); err != nil {
		r.err = fmt.Errorf("%s: its figures: %w", part, err)
	}
	return r
}
