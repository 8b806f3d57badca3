package main

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/sim"
)

type options struct {
	seed, seeds  string
	scale        string
	clients      int    // -scale
	hosts        int    // -scale: hosts of each site; 0: includes the work of the procs
	procs        int    // -scale
	first, count uint64 // first seed and number of seeds; count 0: no end
	one          bool   // -seed
	file         string
	time         time.Duration
	limits       sim.Limits
	workers      int
	twice        bool
	failures     int
	shrink       bool
	shrinkTime   time.Duration
	out          string
	print        bool
	trace        int
	traceSet     bool
	coverage     bool
	progress     bool
	json         bool
}

func newCommand() (*cmdline.Command, *options) {
	o := &options{}
	c := cmdline.NewProgram("impi-sim", help, "")
	c.Check = func([]string) error {
		given := map[string]bool{}
		c.Flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
		o.traceSet = given["trace"]
		if err := o.what(); err != nil {
			return err
		}
		return o.check(given)
	}
	fs := c.Flags
	fs.StringVar(&o.seed, "seed", "", "")
	fs.StringVar(&o.seeds, "seeds", "", "")
	fs.StringVar(&o.file, "case", "", cmdline.File)
	fs.StringVar(&o.scale, "scale", "", "")
	fs.DurationVar(&o.time, "time", 0, "")
	fs.IntVar(&o.limits.Procs, "procs", 0, "")
	fs.IntVar(&o.limits.Steps, "steps", 0, "")
	fs.BoolVar(&o.limits.NoFaults, "no-faults", false, "")
	fs.IntVar(&o.workers, "j", runtime.GOMAXPROCS(0), "")
	fs.BoolVar(&o.twice, "twice", false, "")
	fs.BoolVar(&o.limits.Worlds, "worlds", false, "")
	fs.BoolVar(&o.limits.Survive, "survive", false, "")
	fs.IntVar(&o.failures, "failures", 1, "")
	fs.BoolVar(&o.shrink, "shrink", true, "")
	fs.DurationVar(&o.shrinkTime, "shrink-time", 30*time.Second, "")
	fs.StringVar(&o.out, "out", "out/sim", cmdline.Dir)
	fs.BoolVar(&o.print, "print", false, "")
	fs.IntVar(&o.trace, "trace", 60, "")
	fs.BoolVar(&o.coverage, "coverage", false, "")
	fs.BoolVar(&o.progress, "progress", false, "")
	fs.BoolVar(&o.json, "json", false, "")
	return c, o
}

func (o *options) what() (err error) {
	given := 0
	for _, s := range []string{o.seed, o.seeds, o.file, o.scale} {
		if s != "" {
			given++
		}
	}
	switch {
	case given > 1:
		return errors.New("-seed, -seeds, -case and -scale exclude each other")
	case (o.limits.Worlds || o.limits.Survive) && (o.file != "" || o.scale != ""):
		return errors.New("-worlds and -survive are for -seed and -seeds")
	case o.limits.Worlds && o.limits.Survive:
		return errors.New("-worlds and -survive exclude each other")
	case o.seed != "":
		o.one, o.count = true, 1
		if o.first, err = strconv.ParseUint(o.seed, 10, 64); err != nil {
			return fmt.Errorf("-seed %q: write a number", o.seed)
		}
	case o.seeds != "":
		return o.span(o.seeds)
	case o.scale != "":
		return o.size(o.scale)
	case o.file == "":
		return errors.New("say what to run: -seed N, -seeds A:B, -case FILE, -scale CLIENTS:PROCS or -scale CLIENTS:HOSTSxPROCS; -help shows examples")
	}
	return nil
}

// span reads "A:B" and "A:".
func (o *options) span(seeds string) error {
	from, to, ok := strings.Cut(seeds, ":")
	first, err := strconv.ParseUint(from, 10, 64)
	last := uint64(math.MaxUint64)
	if err == nil && to != "" {
		last, err = strconv.ParseUint(to, 10, 64)
	}
	switch {
	case err != nil || !ok || last <= first:
		return fmt.Errorf("-seeds %q: write A:, or A:B with B above A", seeds)
	case to == "" && o.time == 0:
		return fmt.Errorf("-seeds %q has no end: say -time", seeds)
	case to != "":
		o.count = last - first
	}
	o.first = first
	return nil
}

func (o *options) check(given map[string]bool) error {
	switch {
	case given["procs"] && o.limits.Procs < 1 || o.limits.Procs > 1000:
		return fmt.Errorf("-procs %d: a job has 1 to 1000 here", o.limits.Procs)
	case given["steps"] && o.limits.Steps < 1 || o.limits.Steps > 100_000:
		return fmt.Errorf("-steps %d: a program has 1 to 100000", o.limits.Steps)
	case o.workers < 1:
		return fmt.Errorf("-j %d: write 1 or more", o.workers)
	case o.time < 0 || o.shrinkTime < 0:
		return errors.New("-time and -shrink-time cannot be negative")
	case o.trace < 0 || o.failures < 0:
		return errors.New("-trace and -failures cannot be negative")
	case o.print && o.count != 1 && o.file == "":
		return errors.New("-print is for one case")
	}
	return nil
}

func (o *options) again(seed uint64) string {
	s := fmt.Sprintf("impi-sim -seed %d", seed)
	if o.limits.Worlds {
		s = fmt.Sprintf("impi-sim -worlds -seed %d", seed)
	}
	if o.limits.Survive {
		s = fmt.Sprintf("impi-sim -survive -seed %d", seed)
	}
	if o.limits.Procs != 0 {
		s += fmt.Sprintf(" -procs %d", o.limits.Procs)
	}
	if o.limits.Steps != 0 {
		s += fmt.Sprintf(" -steps %d", o.limits.Steps)
	}
	if o.limits.NoFaults {
		s += " -no-faults"
	}
	return s
}
