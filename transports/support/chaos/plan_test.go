package chaos

import (
	"slices"
	"testing"
	"time"
)

// event is a fault and where it happened.
type event struct {
	offset int64
	stall  time.Duration
	jitter time.Duration
	cut    bool
}

// play returns what happens to the first total bytes, written in calls of the given
// sizes, over and over.
func play(f Faults, number uint64, total int64, sizes ...int) (events []event) {
	p := newPlan(f, number)
	for i := 0; p.offset < total; i++ {
		for left := int(min(int64(sizes[i%len(sizes)]), total-p.offset)); left > 0; {
			at := p.offset
			s := p.next(left)
			if last := len(events) - 1; s.cut || s.stall > 0 || last < 0 || events[last].jitter != s.jitter {
				events = append(events, event{at, s.stall, s.jitter, s.cut})
			}
			if s.cut {
				return events
			}
			left -= s.n
		}
	}
	return events
}

var everything = Faults{
	Seed: 7, Jitter: time.Second, Piece: 100, Stall: time.Minute, StallEvery: 300, CutBytes: 5000,
}

func TestFaultsDependOnBytesAndNotOnCalls(t *testing.T) {
	want := play(everything, 3, 10000, 1)
	for _, sizes := range [][]int{{10000}, {7}, {1, 500, 3}, {128, 4096}} {
		if got := play(everything, 3, 10000, sizes...); !slices.Equal(got, want) {
			t.Errorf("in calls of %v:\n%v\nwant:\n%v", sizes, got, want)
		}
	}
	stalls := 0
	for _, e := range want {
		if e.stall > 0 {
			stalls++
			if e.stall < 30*time.Second || e.stall > 90*time.Second {
				t.Errorf("a stall of %v", e.stall)
			}
		}
		if e.jitter < 0 || e.jitter > time.Second {
			t.Errorf("a jitter of %v", e.jitter)
		}
	}
	last := want[len(want)-1]
	if !last.cut || last.offset < 2500 || last.offset > 7500 || stalls < 5 || len(want) < 30 {
		t.Errorf("%d stalls, %d events, the last is %+v", stalls, len(want), last)
	}
}

func TestSeedAndNumberMakeTheDifference(t *testing.T) {
	other := everything
	other.Seed++
	same, bySeed, byNumber := play(everything, 3, 10000, 100), play(other, 3, 10000, 100), play(everything, 4, 10000, 100)
	if slices.Equal(same, bySeed) || slices.Equal(same, byNumber) {
		t.Error("another seed or link meets the same faults")
	}
}

// One kind of fault does not move the others.
func TestFaultsAreIndependent(t *testing.T) {
	cutAt := func(f Faults) int64 {
		all := play(f, 1, 1<<20, 1000)
		return all[len(all)-1].offset
	}
	alone := Faults{Seed: everything.Seed, CutBytes: everything.CutBytes}
	if a, b := cutAt(everything), cutAt(alone); a != b {
		t.Errorf("cut at %d with other faults, at %d without", a, b)
	}
}

func TestNoFaultsDoNothing(t *testing.T) {
	if got := play(Faults{}, 0, 100000, 1000); len(got) != 1 || got[0] != (event{}) {
		t.Errorf("%v", got)
	}
}
