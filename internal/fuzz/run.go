package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// minimizing is how long the fuzzer may try to make an input smaller. Its own
// default of a minute is longer than most targets' whole share.
const minimizing = 500 * time.Millisecond

type report struct {
	target
	summary string
	output  string // all output, if the target failed
	err     error
}

func fuzz(ctx context.Context, t target, d time.Duration) report {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-fuzz", "^"+t.name+"$",
		"-fuzztime", d.Round(time.Second).String(), "-fuzzminimizetime", minimizing.String(), ".")
	cmd.Dir = t.dir
	out, err := cmd.CombinedOutput()
	r := report{target: t, summary: summary(string(out)), err: err}
	if err != nil {
		r.output = withoutProgress(string(out))
	}
	return r
}

// progress matches the line that the fuzzer prints every three seconds.
var progress = regexp.MustCompile(`(?m)^fuzz: elapsed: [^,]*, (execs: \d+) .*?(new interesting: \d+) .*\n`)

func summary(out string) string {
	all := progress.FindAllStringSubmatch(out, -1)
	if len(all) == 0 {
		return "no input was tried"
	}
	last := all[len(all)-1]
	return last[1] + ", " + last[2]
}

func withoutProgress(out string) string {
	return strings.TrimRight(regexp.MustCompile(`(?m)^fuzz: .*\n`).ReplaceAllString(out, ""), "\n")
}

// Where go test names the failing input: one that it found, or one that existed before.
var (
	written = regexp.MustCompile(`Failing input written to (\S+)`)
	seeded  = regexp.MustCompile(`failure while testing seed corpus entry: (\S+)`)
)

func (r *report) crasher() string {
	if m := written.FindStringSubmatch(r.output); m != nil {
		return filepath.Join(r.pkg, m[1])
	}
	m := seeded.FindStringSubmatch(r.output)
	switch {
	case m == nil:
		return fmt.Sprintf("no input to blame: %v", r.err)
	case strings.Contains(m[1], "/seed#"):
		return "the seed that the target itself adds, " + m[1]
	}
	return filepath.Join(r.pkg, "testdata", "fuzz", m[1])
}
