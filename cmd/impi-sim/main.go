// impi-sim runs simulated MPI jobs, one per seed, and judges them.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/sim"
	"github.com/openimpi/impi/plugins/sdk/support/plainfile"
)

//go:embed help.txt
var help string

func main() {
	cmdline.Main(func(ctx context.Context) int { return run(ctx, os.Args[1:], os.Stdout, os.Stderr) })
}

// Exit statuses.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func run(ctx context.Context, args []string, out, report io.Writer) int {
	c, o := newCommand()
	c.Run = func(_ []string, out, report io.Writer) (int, error) {
		switch {
		case o.scale != "":
			return o.runScale(out, report), nil
		case o.file != "":
			return o.runFile(out, report)
		case o.one:
			return o.runOne(sim.Generate(o.first, o.limits), o.again(o.first), out, report), nil
		}
		return o.sweep(ctx, out, report), nil
	}
	return c.Execute(args, out, report)
}

// maxCase bounds the file of a case.
const maxCase = 64 << 20

func (o *options) runFile(out, report io.Writer) (int, error) {
	text, err := plainfile.ReadPipe(o.file, maxCase)
	if err == nil {
		var c *sim.Case
		if c, err = sim.Parse(string(text)); err == nil {
			return o.runOne(c, "impi-sim -case "+o.file, out, report), nil
		}
		err = fmt.Errorf("%s: %w", o.file, err)
	}
	return exitUsage, err
}

func (o *options) runOne(c *sim.Case, again string, out, report io.Writer) int {
	if o.print {
		fmt.Fprint(out, c)
		return exitOK
	}
	begin := time.Now()
	v := sim.Run(c, sim.Options{Trace: o.trace, Twice: o.twice})
	t := sim.Tally{Seeds: 1, Events: v.Events, Time: v.Time, Took: time.Since(begin), Coverage: v.Coverage}
	if v.Failure == nil {
		if o.traceSet {
			fmt.Fprint(report, v.Trace)
		}
	} else {
		t.Findings = []sim.Finding{{Seed: c.Seed, Failure: v.Failure}}
		o.explain(c, v, again, report)
	}
	return o.end(t, fmt.Sprintf("digest %016x", v.Digest), out, report)
}

func (o *options) sweep(ctx context.Context, out, report io.Writer) int {
	if o.time > 0 {
		var stop func()
		ctx, stop = context.WithTimeout(ctx, o.time)
		defer stop()
	}
	s := sim.Sweep{
		First: o.first, Count: o.count, Workers: o.workers, Limits: o.limits,
		Options: sim.Options{Twice: o.twice}, Twice: 16, Failures: o.failures,
	}
	p := newProgress(o, report)
	if p != nil {
		s.Progress, s.Every = p.show, p.every
	}
	t := s.Run(ctx)
	p.clear()
	for _, f := range t.Findings {
		c := sim.Generate(f.Seed, o.limits)
		o.explain(c, sim.Run(c, sim.Options{Trace: o.trace, Twice: f.Failure.Oracle == "repeat"}), o.again(f.Seed), report)
	}
	return o.end(t, "", out, report)
}
