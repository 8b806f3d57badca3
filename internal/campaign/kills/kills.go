// Package kills runs jobs of which it kills processes, chosen by a seed: procs, nodes, plugins and
// the launcher, one to three of them, at any time.
package kills

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/openimpi/impi/internal/campaign/job"
)

// Result is how a job has ended, and what was killed in it.
type Result struct {
	job.Outcome
	Kind  string
	Kills []string // command lines of the killed processes, and when they were killed
}

const (
	rounds = 4000                    // rounds of a job that takes longer than its kills
	within = 1500 * time.Millisecond // time of the kills, from the beginning
)

// Run runs the job of a seed. The seed determines the job, the times and the order of choice; which
// processes exist then depends on the machine.
func Run(ctx context.Context, b *job.Workspace, seed uint64) (r Result, err error) {
	chance := rand.New(rand.NewPCG(seed, 0))
	r, err = run(ctx, b, kinds[chance.IntN(len(kinds))], seed, chance)
	if errors.Is(err, job.ErrNoArea) { // one by a plugin, too
		return run(ctx, b, job.Kinds[len(job.Kinds)-1], seed, chance)
	}
	return r, err
}

// kinds are the jobs of which processes are killed.
var kinds = append(slices.Clone(job.Kinds), job.Wide)

func run(ctx context.Context, b *job.Workspace, k job.Kind, seed uint64, chance *rand.Rand) (r Result, err error) {
	b.Seed = seed
	rounds := rounds
	if k.Wide != nil {
		rounds /= 10 // each takes two ways of the line
	}
	j, err := b.New(context.WithoutCancel(ctx), k, rounds)
	if err != nil {
		return r, err
	}
	defer j.Remove()
	r.Kind = k.Name
	if err := j.Cmd.Start(); err != nil {
		return r, err
	}
	over := make(chan error, 1)
	go func() { over <- j.Cmd.Wait() }()
	pids, nodes := map[int]bool{}, 0
	at := make([]time.Duration, 1+chance.IntN(3))
	for i := range at {
		at[i] = time.Duration(chance.Int64N(int64(within)))
	}
	slices.Sort(at)
	begun := time.Now()
	for _, when := range at {
		select {
		case <-ctx.Done():
		case <-time.After(time.Until(begun.Add(when))):
		}
		list := j.Processes()
		for pid := range list {
			pids[pid] = true
		}
		if k.Wide != nil {
			delete(list, j.Cmd.Process.Pid) // the shell that waits for the nodes is none of the job's
		}
		if len(list) == 0 {
			break
		}
		pid := slices.Sorted(maps.Keys(list))[chance.IntN(len(list))]
		if syscall.Kill(pid, syscall.SIGKILL) == nil {
			r.Kills = append(r.Kills, fmt.Sprintf("%s after %v", name(list[pid]), when.Round(time.Millisecond)))
			r.Killed = r.Killed || pid == j.Cmd.Process.Pid
			if strings.Contains(list[pid], "-site ") {
				nodes++
			}
		}
	}
	killed := r.Killed || k.Wide != nil && nodes == 2 // nobody is left who could say why
	r.Outcome, err = j.Judge(ctx, over, j.Watch())
	r.Killed = killed
	if all := slices.Collect(maps.Keys(pids)); err == nil && len(j.Files(all)) > 0 {
		if err := b.RunAgain(ctx, j, k); err != nil {
			r.Left = append(r.Left, "something that fails the next job: "+err.Error())
		}
		r.Left = append(r.Left, j.Files(all)...)
	}
	return r, err
}

func name(line string) string {
	program, rest, _ := strings.Cut(line, " ")
	if _, site, found := strings.Cut(rest, "-site "); found {
		return filepath.Base(program) + " of " + site
	}
	if strings.Contains(rest, "-config") {
		return "launcher"
	}
	return filepath.Base(program)
}
