// Command run builds impi-node, impi-server and impi-conform with the faults of package
// faults, turns on one at a time, and plays the cases that are named for it: all of them
// must fail. `make conform-mutants` is how to call it.
//
// It exits with 1 if a case has not noticed a fault, and if one fails without any: then
// nothing is proved. Nothing is written to the sources.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// Exit statuses.
const (
	exitCaught   = 0
	exitSurvived = 1
	exitUsage    = 2
)

func run(ctx context.Context, args []string, out, report io.Writer) int {
	fs := flag.NewFlagSet("conform-mutants", flag.ContinueOnError)
	fs.SetOutput(report)
	t := tool{report: report}
	fs.DurationVar(&t.patience, "patience", 4*time.Second, "how long a case with a fault waits for any step")
	fs.IntVar(&t.workers, "j", 3, "how many faults are tried at a time")
	only := fs.String("only", "", "regular expression: only faults whose name it matches")
	if fs.Parse(args) != nil {
		return exitUsage
	}
	match, err := regexp.Compile(*only)
	if err != nil || fs.NArg() > 0 || t.workers < 1 {
		fmt.Fprintf(report, "conform-mutants: %v, -j %d, -only %q: %v\n", fs.Args(), t.workers, *only, err)
		return exitUsage
	}
	done, err := t.prepare(ctx, match)
	if err != nil {
		fmt.Fprintln(report, "conform-mutants:", err)
		return exitSurvived
	}
	defer done()
	begin := time.Now()
	if err := t.baseline(ctx); err != nil {
		fmt.Fprintln(report, "conform-mutants:", err)
		return exitSurvived
	}
	missed := t.all(ctx)
	if ctx.Err() != nil {
		fmt.Fprintln(report, "interrupted")
		return exitSurvived
	}
	for _, text := range missed {
		fmt.Fprintln(out, text)
	}
	fmt.Fprintf(out, "%d of %d faults are noticed by all cases that are named for them, in %.0f s\n",
		len(t.chosen)-len(missed), len(t.chosen), time.Since(begin).Seconds())
	if len(missed) > 0 {
		return exitSurvived
	}
	return exitCaught
}
