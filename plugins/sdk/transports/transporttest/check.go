package transporttest

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

// Verdict is how a case ended.
type Verdict string

// The verdicts.
const (
	Pass Verdict = "pass"
	Fail Verdict = "fail"
	Skip Verdict = "skip" // the rule says nothing about this transport
)

// Outcome is the result of Check.
type Outcome struct {
	Verdict Verdict
	Reason  string   // what was violated, or why the case was skipped
	Log     []string // messages of the case
	Took    time.Duration
}

// Check runs a case outside of package testing. A panic is a failure. A case that has not ended
// within limit is a failure, too, and is left running; zero means no limit.
func (c Case) Check(h Harness, limit time.Duration) Outcome {
	return Record(func(t T) { c.Run(t, h) }, limit)
}

// Record runs any function that needs a T, and handles it as Check handles a case.
func Record(f func(T), limit time.Duration) Outcome {
	r := &recorder{Outcome: Outcome{Verdict: Pass}, ended: make(chan struct{})}
	begin := time.Now()
	go r.run(f)
	var over <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-r.ended:
	case <-over:
		r.end(Fail, fmt.Sprintf("it has not ended within %v", limit))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.Outcome
	out.Took = time.Since(begin)
	return out
}

// recorder is a T that notes how a case ends.
type recorder struct {
	Outcome
	mu       sync.Mutex
	settled  bool // the first verdict counts
	cleanups []func()
	ended    chan struct{}
}

func (r *recorder) run(f func(T)) {
	defer close(r.ended)
	defer r.clean()
	defer r.catch()
	f(r)
}

func (r *recorder) catch() {
	if p := recover(); p != nil {
		r.end(Fail, fmt.Sprintf("panic: %v\n%s", p, debug.Stack()))
	}
}

// clean does what was registered, the last one first.
func (r *recorder) clean() {
	for {
		r.mu.Lock()
		n := len(r.cleanups)
		if n == 0 {
			r.mu.Unlock()
			return
		}
		f := r.cleanups[n-1]
		r.cleanups = r.cleanups[:n-1]
		r.mu.Unlock()
		func() {
			defer r.catch()
			f()
		}()
	}
}

func (r *recorder) end(v Verdict, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.settled {
		r.settled, r.Verdict, r.Reason = true, v, reason
	}
}

func (r *recorder) Helper() {}

func (r *recorder) Logf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Log = append(r.Log, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.end(Fail, fmt.Sprintf(format, args...))
	runtime.Goexit()
}

func (r *recorder) Skipf(format string, args ...any) {
	r.end(Skip, fmt.Sprintf(format, args...))
	runtime.Goexit()
}

func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}
