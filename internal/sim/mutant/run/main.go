// Command run builds impi-sim with one fault of package mutant at a time and
// lets it run seeds until one fails. `make sim-mutants` is how to call it.
//
// It exits with 1 if a fault was not found, and if seeds fail without any: then
// nothing is proved. Nothing is written to the sources; builds take the changed
// file from elsewhere (go build -overlay).
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

	"github.com/openimpi/impi/internal/sim/mutant"
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
	t := tool{report: report}
	fs.Uint64Var(&t.first, "first", 0, "the first seed")
	fs.Uint64Var(&t.seeds, "seeds", 400, "how many seeds a fault may survive at most")
	fs.DurationVar(&t.limit, "time", 60*time.Second, "how long the seeds of a fault may take")
	fs.IntVar(&t.workers, "j", 2, "how many faults are tried at a time")
	only := fs.String("only", "", "regular expression: only faults whose name it matches")
	asJSON := fs.Bool("json", false, "print the table as JSON")
	if fs.Parse(args) != nil {
		return exitUsage
	}
	all, err := chosen(*only)
	if err == nil && (fs.NArg() > 0 || t.workers < 1 || t.seeds < 1) {
		err = fmt.Errorf("%v, -j %d, -seeds %d: this command takes flags only, and at least 1 of both", fs.Args(), t.workers, t.seeds)
	}
	if err == nil {
		var done func()
		if done, err = t.prepare(ctx); err == nil {
			defer done()
		}
	}
	if err != nil {
		fmt.Fprintln(report, "sim-mutants:", err)
		return exitUsage
	}
	begin := time.Now()
	if err := t.baseline(ctx); err != nil {
		fmt.Fprintln(report, "sim-mutants:", err)
		return exitSurvived
	}
	results := t.all(ctx, all)
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

// chosen gives the faults whose name the expression matches.
func chosen(only string) (some []mutant.Mutant, err error) {
	match, err := regexp.Compile(only)
	if err != nil {
		return nil, err
	}
	all, err := mutant.All()
	for _, m := range all {
		if match.MatchString(m.Name) {
			some = append(some, m)
		}
	}
	if err == nil && len(some) == 0 {
		err = fmt.Errorf("the name of no fault matches %q", only)
	}
	return some, err
}
