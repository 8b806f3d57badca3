// Command run builds impi-sim with the faults of package mutant, turns on one at a
// time, and lets it run seeds until one fails. `make sim-mutants` is how to call it.
//
// It exits with 1 if a fault was not found, and if seeds fail without any: then
// nothing is proved. Nothing is written to the sources; the build takes the changed
// files from elsewhere (go build -overlay).
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
	fs := flag.NewFlagSet("sim-mutants", flag.ContinueOnError)
	fs.SetOutput(report)
	t := tool{report: report, hang: 30 * time.Second}
	fs.Uint64Var(&t.first, "first", 0, "the first seed")
	fs.Uint64Var(&t.seeds, "seeds", 2000, "how many seeds a fault may survive at most")
	fs.DurationVar(&t.limit, "time", 2*time.Minute, "how long the seeds of a fault may take")
	fs.IntVar(&t.workers, "j", 2, "how many faults are tried at a time")
	only := fs.String("only", "", "regular expression: only faults whose name it matches")
	asJSON := fs.Bool("json", false, "print the table as JSON")
	if fs.Parse(args) != nil {
		return exitUsage
	}
	if fs.NArg() > 0 || t.workers < 1 || t.seeds < 1 {
		fmt.Fprintf(report, "sim-mutants: %v, -j %d, -seeds %d: this command takes flags only, and at least 1 of both\n", fs.Args(), t.workers, t.seeds)
		return exitUsage
	}
	match, err := regexp.Compile(*only)
	if err != nil {
		fmt.Fprintln(report, "sim-mutants: -only:", err)
		return exitUsage
	}
	done, err := t.prepare(ctx)
	if err != nil {
		fmt.Fprintln(report, "sim-mutants:", err)
		return exitSurvived
	}
	defer done()
	begin := time.Now()
	if err := t.baseline(ctx); err != nil {
		fmt.Fprintln(report, "sim-mutants:", err)
		return exitSurvived
	}
	results := t.all(ctx, match)
	if ctx.Err() != nil {
		fmt.Fprintln(report, "interrupted")
		return exitSurvived
	}
	s := summary{Results: results, Seconds: time.Since(begin).Seconds()}
	if *asJSON {
		s.json(out)
	} else {
		s.table(out)
	}
	if s.caught() < len(results) {
		return exitSurvived
	}
	return exitCaught
}
