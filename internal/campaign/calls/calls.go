// Package calls fails the system calls of a job's processes one after the other: each call of each
// kind in each process once with each error that it can have, and each write once cut short.
package calls

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/openimpi/impi/internal/campaign/inject"
	"github.com/openimpi/impi/internal/campaign/job"
)

// Point is one call that is made to fail in one way.
type Point struct {
	Kind job.Kind
	inject.Call
	Fault inject.Fault
}

// String returns the name of the point: "tcp: node 2: write/socket 17: ECONNRESET".
func (p Point) String() string {
	return fmt.Sprintf("%s: %s: %s %d: %s", p.Kind.Name, p.Process, p.Name, p.N, p.Fault)
}

// Key returns a number that orders points as if at random, so that some points in a row are of all
// kinds and jobs. A point keeps its place when others come and go.
func (p Point) Key() uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(p.String()))
	// FNV leaves names that differ at their ends close to each other.
	k := h.Sum64()
	k ^= k >> 33
	k *= 0xff51afd7ed558ccd
	k ^= k >> 33
	return k
}

func role(args []string) string {
	name := strings.TrimPrefix(filepath.Base(args[0]), "impi-")
	switch {
	case name != "node":
		return name
	case slices.Contains(args, "-site"):
		return "node"
	case slices.Contains(args, "-config"):
		return "launcher"
	}
	return "transport" // for transports in impi-node itself
}

const rounds = 3

// Points runs each kind of job once, counts the calls, and returns all points in the order of their
// keys.
func Points(ctx context.Context, b *job.Workspace) (list []Point, err error) {
	for _, k := range job.Kinds {
		last, err := count(ctx, b, k)
		if err != nil {
			return nil, fmt.Errorf("the job %s, of which nothing was failed: %w", k.Name, err)
		}
		for c, n := range last {
			for _, f := range inject.Faults(c.Name) {
				for c.N = 1; c.N <= n; c.N++ {
					list = append(list, Point{k, c, f})
				}
			}
		}
	}
	slices.SortFunc(list, func(a, b Point) int { return cmp.Compare(a.Key(), b.Key()) })
	return list, nil
}

// tries is how often a job without injected faults may fail. Each of its calls is stopped, so that
// it is slow, and on a busy machine it may miss the limits of its start.
const tries = 3

// count returns how many calls of each name each process of a job makes.
func count(ctx context.Context, b *job.Workspace, k job.Kind) (last map[inject.Call]int, err error) {
	for range tries {
		last = map[inject.Call]int{}
		var o job.Outcome
		o, _, err = run(ctx, b, k, nil, func(c inject.Call) inject.Fault {
			last[inject.Call{Process: c.Process, Name: c.Name}] = c.N
			return ""
		})
		if err == nil && (o.Status != 0 || o.Wrong() != "") {
			err = fmt.Errorf("status %d %s\n%s", o.Status, o.Wrong(), o.Output)
		}
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	return last, err
}

// Result is the outcome of a point.
type Result struct {
	Point
	job.Outcome
	Reached bool // the call was made, and failed
	Took    time.Duration
}

// Run runs the point's job, in which the one call of the point fails. The error is for jobs that
// could not be run; how the job took the failure is in r.
func Run(ctx context.Context, b *job.Workspace, p Point) (r Result, err error) {
	r.Point = p
	name, _, _ := strings.Cut(p.Name, "/")
	begun := time.Now()
	r.Outcome, r.Reached, err = run(ctx, b, p.Kind, []string{name}, func(c inject.Call) inject.Fault {
		if c == p.Call {
			return p.Fault
		}
		return ""
	})
	r.Took = time.Since(begun)
	return r, err
}

func run(ctx context.Context, b *job.Workspace, k job.Kind, calls []string, decide func(inject.Call) inject.Fault) (o job.Outcome, applied bool, err error) {
	j, err := b.New(context.WithoutCancel(ctx), k, rounds)
	if err != nil {
		return o, false, err
	}
	defer j.Remove()
	t, err := inject.Start(j.Cmd, inject.Options{Calls: calls, Role: role, Decide: decide})
	if err != nil {
		return o, false, err
	}
	over := make(chan error, 1)
	go func() { over <- j.Cmd.Wait() }()
	o, err = j.Judge(ctx, over, t.Exited())
	o.Left = append(o.Left, j.Files(t.Pids())...)
	return o, t.Applied(), err
}
