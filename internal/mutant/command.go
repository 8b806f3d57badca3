package mutant

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"
)

// Command is a command that tries faults: what the commands that do so have in common,
// and in fields what is each one's own.
type Command struct {
	Name  string
	Bench Harness // its Report is an argument of Run

	Flags func(*flag.FlagSet) // adds its own flags; may be nil
	Check func() error        // reports what is wrong with these flags; may be nil

	// Baseline checks that nothing is noticed without a fault: otherwise nothing is proved. numbers
	// are the faults that will be tried.
	Baseline func(ctx context.Context, numbers []int) error

	// Try tries a fault, and returns the result in a line. Several goroutines call it.
	Try func(ctx context.Context, number int) string

	// Conclude prints the conclusion at the end. It reports whether all faults were noticed.
	Conclude func(out io.Writer, took time.Duration) (all bool)
}

// Exit statuses.
const (
	Caught   = 0 // every fault was noticed
	Survived = 1 // one was not, or nothing could be tried
	Usage    = 2 // the command line is wrong
)

// Main runs the command with the program's arguments and ends the program.
func (c *Command) Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(c.Run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// Run is Main for given arguments. It returns the exit status.
func (c *Command) Run(ctx context.Context, args []string, out, report io.Writer) int {
	c.Bench.Report = report
	only, err := c.parse(args, report)
	switch {
	case errors.Is(err, errShown):
		return Usage
	case err != nil:
		fmt.Fprintf(report, "%s: %v\n", c.Name, err)
		return Usage
	}
	all, err := c.try(ctx, only, out)
	switch {
	case err != nil:
		fmt.Fprintf(report, "%s: %v\n", c.Name, err)
		return Survived
	case !all:
		return Survived
	}
	return Caught
}

// errShown stands for errors that package flag has already printed.
var errShown = errors.New("mutant: flags")

func (c *Command) parse(args []string, report io.Writer) (only *regexp.Regexp, err error) {
	fs := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	fs.SetOutput(report)
	fs.IntVar(&c.Bench.Workers, "j", c.Bench.Workers, "how many faults are tried at a time")
	pattern := fs.String("only", "", "regular expression: only faults whose name it matches")
	if c.Flags != nil {
		c.Flags(fs)
	}
	if fs.Parse(args) != nil {
		return nil, errShown
	}
	switch {
	case fs.NArg() > 0:
		return nil, fmt.Errorf("%q: this command takes flags only", fs.Args())
	case c.Bench.Workers < 1:
		return nil, fmt.Errorf("-j %d: at least one fault is tried at a time", c.Bench.Workers)
	}
	if c.Check != nil {
		if err := c.Check(); err != nil {
			return nil, err
		}
	}
	if only, err = regexp.Compile(*pattern); err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	return only, nil
}

func (c *Command) try(ctx context.Context, only *regexp.Regexp, out io.Writer) (all bool, err error) {
	numbers := c.Bench.Choose(only)
	if len(numbers) == 0 {
		return false, errors.New("-only: no fault has such a name")
	}
	done, err := c.Bench.Build(ctx)
	if err != nil {
		return false, err
	}
	defer done()
	begin := time.Now()
	if err := c.Baseline(ctx, numbers); err != nil {
		return false, fmt.Errorf("without any fault: %w", err)
	}
	c.Bench.Each(ctx, numbers, func(number int) string { return c.Try(ctx, number) })
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	return c.Conclude(out, time.Since(begin)), nil
}
