// Package kernel is the world in which simulated jobs run: virtual time, events, coroutines, links
// and their faults. One seed decides everything that a real computer leaves to chance, so a run can
// be repeated to the last byte. Only one thing runs at a time, and time passes only by events.
package kernel

import (
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"time"
)

// ErrEndless is wrapped when a run does not come to an end.
var ErrEndless = errors.New("kernel: the run does not end")

// Kernel is one simulated world. It must be used from one goroutine.
type Kernel struct {
	rng     *rand.Rand
	now     time.Duration
	events  events
	count   uint64 // number of events that have happened
	marks   []mark // ascending
	handles []waitable
	tasks   []*Task
	current *Task // the task that runs
	trace   trace
	digest  uint64
}

// New creates a world whose random choices are decided by seed.
func New(seed uint64) *Kernel {
	return &Kernel{rng: rand.New(rand.NewPCG(seed, 0x696d7069)), trace: trace{limit: defaultTrace}}
}

// Now returns the time since the world began.
func (k *Kernel) Now() time.Duration { return k.now }

// Rand returns the world's random number generator. Each use of it changes everything that follows.
func (k *Kernel) Rand() *rand.Rand { return k.rng }

// Events returns the number of events that have happened.
func (k *Kernel) Events() uint64 { return k.count }

// Digest returns a hash of all that has happened. Two runs of one seed have the same.
func (k *Kernel) Digest() uint64 { return k.digest }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// mix adds b to the digest. Processors have instructions for both sums; crc64 would also take 16
// KiB of the stack of each task that sends.
func (k *Kernel) mix(b []byte) {
	k.mixNumbers(uint64(crc32.ChecksumIEEE(b))<<32 | uint64(crc32.Checksum(b, castagnoli)))
}

func (k *Kernel) mixNumbers(numbers ...uint64) {
	for _, n := range numbers {
		k.digest = (k.digest ^ n) * 0x9e3779b97f4a7c15
		k.digest ^= k.digest >> 29
	}
}

// Chance returns true with probability p.
func (k *Kernel) Chance(p float64) bool { return p > 0 && k.rng.Float64() < p }

// Between returns a duration from lo to hi, both included.
func (k *Kernel) Between(lo, hi time.Duration) time.Duration {
	if hi <= lo {
		return lo
	}
	return lo + time.Duration(k.rng.Int64N(int64(hi-lo)+1))
}

// Timer is a scheduled call.
type Timer struct {
	k     *Kernel
	f     func()
	at    time.Duration
	tie   uint64 // decides the order of events at the same time, by chance
	index int    // in the heap; -1: not in it
}

// After schedules a call of f after d. f never runs before the caller gives up control, even if d
// is 0.
func (k *Kernel) After(d time.Duration, f func()) *Timer {
	t := &Timer{k: k, f: f, index: -1}
	t.Reset(d)
	return t
}

// Reset schedules the call for d from now, whether it has happened or not, and reports whether it
// was still scheduled.
func (t *Timer) Reset(d time.Duration) bool {
	was := t.Stop()
	t.at, t.tie = t.k.now+max(d, 0), t.k.rng.Uint64()
	t.k.events.push(t)
	return was
}

// Stop prevents the call, and reports whether it was still scheduled.
func (t *Timer) Stop() bool {
	if t.index < 0 {
		return false
	}
	t.k.events.remove(t.index)
	return true
}

// Run processes events until none is left or done returns true. It returns ErrEndless after limit
// events, or when virtual time passes until.
func (k *Kernel) Run(limit uint64, until time.Duration, done func() bool) error {
	for first := k.count; len(k.events) > 0 && !done(); {
		if len(k.marks) > 0 && k.count >= k.marks[0].at {
			f := k.marks[0].f
			k.marks = k.marks[1:]
			f()
			continue // the event may have stopped the last timer
		}
		if k.count-first >= limit {
			return fmt.Errorf("%w: %d events in %v", ErrEndless, limit, k.now)
		}
		t := k.events[0]
		if t.at > until {
			return fmt.Errorf("%w: %v have passed", ErrEndless, until)
		}
		k.events.remove(0)
		k.now = t.at
		k.mixNumbers(uint64(t.at))
		t.f()
		k.count++
	}
	return nil
}

// mark is a call before the event with a certain number.
type mark struct {
	at uint64
	f  func()
}

// AtEvent schedules a call of f before event n, counted from 0. f is not called if there are fewer
// events.
func (k *Kernel) AtEvent(n uint64, f func()) {
	i, _ := slices.BinarySearchFunc(k.marks, n, func(m mark, n uint64) int {
		return cmp.Or(cmp.Compare(m.at, n), -1) // insert after marks of the same event
	})
	k.marks = slices.Insert(k.marks, i, mark{n, f})
}

// Close ends all tasks, wherever they are.
func (k *Kernel) Close() {
	for _, t := range k.tasks {
		t.Kill()
	}
}
