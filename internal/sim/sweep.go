package sim

import (
	"context"
	"sync"
	"time"
)

// Sweep is a run of many seeds: Count of them beginning with First, or without end if Count is 0.
type Sweep struct {
	First, Count uint64
	Workers      int // goroutines; each runs one world at a time
	Limits       Limits
	Options      Options
	Twice        uint64 // seeds until one run is repeated to check that it is the same; 0: never repeated
	Failures     int    // stop after this number of failures; 0: never
	Progress     func(Tally)
	Every        time.Duration // interval between calls of Progress, from one goroutine

	one func(seed uint64, s Sweep) result // processes a seed; nil: run it
}

// Finding is a seed that failed.
type Finding struct {
	Seed    uint64
	Failure *Failure
}

// Tally is the result of a sweep so far.
type Tally struct {
	Seeds    uint64
	Events   uint64
	Time     time.Duration // virtual time
	Took     time.Duration // real time
	Repeated uint64
	Findings []Finding // in the order in which they were found
	Coverage Coverage
}

// Run runs the seeds until all are done, ctx ends, or there are enough failures. Which seeds fail
// does not depend on Workers.
func (s Sweep) Run(ctx context.Context) Tally {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if s.one == nil {
		s.one = runSeed
	}
	begin := time.Now()
	t := Tally{Coverage: make(Coverage)}
	seeds, verdicts := make(chan uint64), make(chan result)
	go s.feed(ctx, seeds)
	var all sync.WaitGroup
	for range max(s.Workers, 1) {
		all.Go(func() {
			for seed := range seeds {
				verdicts <- s.one(seed, s)
			}
		})
	}
	go func() {
		all.Wait()
		close(verdicts)
	}()
	last := begin
	for r := range verdicts {
		t.take(r)
		if s.Failures > 0 && len(t.Findings) >= s.Failures {
			stop()
		}
		if now := time.Now(); s.Progress != nil && now.Sub(last) >= s.Every {
			last, t.Took = now, now.Sub(begin)
			s.Progress(t)
		}
	}
	t.Took = time.Since(begin)
	return t
}

func (s Sweep) feed(ctx context.Context, seeds chan<- uint64) {
	defer close(seeds)
	for i := uint64(0); s.Count == 0 || i < s.Count; i++ {
		select {
		case <-ctx.Done():
			return
		default:
		}
		select {
		case seeds <- s.First + i:
		case <-ctx.Done():
			return
		}
	}
}

type result struct {
	seed  uint64
	v     *Verdict
	twice bool
}

func runSeed(seed uint64, s Sweep) result {
	o := s.Options
	o.Twice = o.Twice || s.Twice > 0 && seed%s.Twice == 0
	return result{seed, Run(Generate(seed, s.Limits), o), o.Twice}
}

func (t *Tally) take(r result) {
	t.Seeds++
	t.Events += r.v.Events
	t.Time += r.v.Time
	t.Coverage.Add(r.v.Coverage)
	if r.twice {
		t.Repeated++
	}
	if r.v.Failure != nil {
		t.Findings = append(t.Findings, Finding{r.seed, r.v.Failure})
	}
}
