// Command fuzz runs every fuzz target of the module and of the SDK's, one after the other,
// within one budget of time. `make fuzz` is how to call it; docs/testing.md tells more.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"
)

func main() {
	budget := flag.Duration("budget", 10*time.Minute, "time for all targets together, building them included")
	each := flag.Duration("each", 0, "time for each target; the budget does not count then")
	only := flag.String("only", "", "regular expression: only targets whose package and name it matches, as in core/wire.FuzzHeader")
	names := flag.Bool("list", false, "print the targets, and run none")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r := runner{out: os.Stdout, budget: *budget, each: *each, now: time.Now, fuzz: fuzz, list: *names}
	os.Exit(r.main(ctx, *only, flag.Args()))
}

// sdk is a module of its own, which ./... leaves out.
const sdk = "github.com/openimpi/impi/plugins/sdk/..."

type runner struct {
	out    io.Writer
	budget time.Duration
	each   time.Duration // 0: the budget is shared
	list   bool          // print the targets only
	now    func() time.Time
	fuzz   func(ctx context.Context, t target, d time.Duration) report
}

// main returns the exit status: 1 if a target failed, 2 if none could be run.
func (r *runner) main(ctx context.Context, only string, patterns []string) int {
	if len(patterns) == 0 {
		patterns = []string{"./...", sdk}
	}
	targets, err := list(patterns, only)
	if err == nil && len(targets) == 0 {
		err = fmt.Errorf("no fuzz target in %v matches %q", patterns, only)
	}
	if err != nil {
		fmt.Fprintln(r.out, "fuzz:", err)
		return 2
	}
	if r.list {
		for _, t := range targets {
			fmt.Fprintln(r.out, t)
		}
		return 0
	}
	return r.run(ctx, targets)
}

func (r *runner) run(ctx context.Context, targets []target) int {
	begin := r.now()
	var failed []report
	for i, t := range targets {
		share, left := r.share(begin, len(targets)-i)
		fmt.Fprintf(r.out, "[%d/%d] %v for %v, %v left\n", i+1, len(targets), t, share.Round(time.Second), left.Round(time.Second))
		p := r.fuzz(ctx, t, share)
		if ctx.Err() != nil {
			fmt.Fprintln(r.out, "interrupted")
			return 1
		}
		if p.err == nil {
			fmt.Fprintf(r.out, "        %s\n", p.summary)
			continue
		}
		failed = append(failed, p)
		fmt.Fprintf(r.out, "        FAILED: %v\n%s\n", p.err, p.output)
	}
	took := r.now().Sub(begin).Round(time.Second)
	if len(failed) == 0 {
		fmt.Fprintf(r.out, "%d targets in %v, no failure\n", len(targets), took)
		return 0
	}
	fmt.Fprintf(r.out, "%d of %d targets failed in %v:\n", len(failed), len(targets), took)
	for _, p := range failed {
		fmt.Fprintf(r.out, "  %v: %s\n", p.target, p.crasher())
	}
	return 1
}

// share returns the time of the next of n targets, and of all of them. What is left
// of the budget is shared evenly, so that one target which was slow to build
// costs all others a little.
func (r *runner) share(begin time.Time, n int) (share, left time.Duration) {
	if r.each > 0 {
		return r.each, r.each * time.Duration(n)
	}
	left = max(r.budget-r.now().Sub(begin), 0)
	return max(left/time.Duration(n), time.Second), left
}
