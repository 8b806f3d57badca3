package agent

import (
	"errors"
	"testing"
	"time"

	"github.com/openimpi/impi/core/dynamic"
)

// Rounds of dials of one candidate each.
var (
	noWay  = missedBy(dynamic.Unconnected | dynamic.OutOfReach)
	slowly = missedBy(dynamic.Unconnected | dynamic.TooSlow)
	broken = missedBy(0) // in its greeting
	denied = dynamic.FailedCandidate{DialResult: dynamic.DialResult{Verdict: dynamic.Leaving, Err: errors.New("for the test")}}
)

func missedBy(f dynamic.DialFailure) dynamic.FailedCandidate {
	return dynamic.FailedCandidate{DialResult: dynamic.DialResult{Err: errors.New("for the test"), Failure: f}}
}

// A host that may be slow to shake hands has one round more than one to which there is no way.
func TestReachOnDemand(t *testing.T) {
	for name, tc := range map[string]struct {
		must   bool
		rounds [][]dynamic.FailedCandidate
		want   []bool
	}{
		"no way to it":                   {true, [][]dynamic.FailedCandidate{{noWay, noWay}}, []bool{true}},
		"slow":                           {true, [][]dynamic.FailedCandidate{{slowly}, {slowly}}, []bool{false, true}},
		"slow by one way":                {true, [][]dynamic.FailedCandidate{{noWay, slowly}, {noWay, slowly}}, []bool{false, true}},
		"slow, and then there is no way": {true, [][]dynamic.FailedCandidate{{slowly}, {noWay}}, []bool{false, true}},
		"slow, alive, slow":              {true, [][]dynamic.FailedCandidate{{slowly}, {broken}, {slowly}, {slowly}}, []bool{false, false, false, true}},
		"it answers":                     {true, [][]dynamic.FailedCandidate{{denied}, {denied, slowly}}, []bool{false, false}},
		"plain TCP times out":            {false, [][]dynamic.FailedCandidate{{slowly, slowly}}, []bool{true}}, // the kernel would answer
	} {
		r := Reach{Must: tc.must, Listens: true, Began: time.Unix(0, 0)}
		if x := r.OnDemand(r.Began.Add(dynamic.DialsLimit-1), []dynamic.FailedCandidate{noWay}); x != (Reached{}) {
			t.Errorf("%s: %+v before its time", name, x)
		}
		slow := false
		for i, missed := range tc.rounds {
			x := r.OnDemand(r.Began.Add(dynamic.DialsLimit), missed)
			if x.Silent != tc.want[i] || x.Warn != (r.slow && !slow) {
				t.Errorf("%s: after round %d: %+v", name, i+1, x)
			}
			slow = r.slow
		}
	}
}

// At the start silence counts against hosts that listen, or that the kernel answers for. The
// operator is warned once, in time.
func TestReachAtStart(t *testing.T) {
	for name, tc := range map[string]struct {
		r      Reach
		after  time.Duration
		rounds []dynamic.FailedCandidate
		want   []Reached
	}{
		"no way to one of the site":     {Reach{Own: true, Listens: true}, 4 * time.Second, []dynamic.FailedCandidate{noWay}, []Reached{{Silent: true}}},
		"one of the site is slow":       {Reach{Must: true, Own: true, Listens: true}, 4 * time.Second, []dynamic.FailedCandidate{slowly, slowly}, []Reached{{Warn: true, Left: dynamic.DialsLimit}, {Silent: true}}},
		"no way to one of ours":         {Reach{Listens: true}, time.Second, []dynamic.FailedCandidate{noWay}, []Reached{{Silent: true}}},
		"no way to one of ours, late":   {Reach{Listens: true}, 3 * time.Second, []dynamic.FailedCandidate{noWay, noWay}, []Reached{{Silent: true, Warn: true, Left: FarLimit}, {Silent: true}}},
		"one of ours is slow":           {Reach{Must: true, Listens: true}, time.Second, []dynamic.FailedCandidate{slowly, broken, slowly, slowly}, []Reached{{Warn: true, Left: FarLimit}, {}, {Warn: true, Left: FarLimit}, {Silent: true}}},
		"no way to another, by plain":   {Reach{}, 4 * time.Second, []dynamic.FailedCandidate{noWay}, []Reached{{Silent: true}}},
		"no way to another, by a route": {Reach{Must: true}, 4 * time.Second, []dynamic.FailedCandidate{noWay}, []Reached{{}}},
		"something answers":             {Reach{Listens: true}, 4 * time.Second, []dynamic.FailedCandidate{broken, denied}, []Reached{{}, {}}},
	} {
		r := tc.r
		for i, m := range tc.rounds {
			if x := r.AtStart(r.Began.Add(tc.after), []dynamic.FailedCandidate{m}); x != tc.want[i] {
				t.Errorf("%s: after round %d: %+v, want %+v", name, i+1, x, tc.want[i])
			}
		}
	}
}

// TestReachLimits: the candidates of a round share the time of the round where the host listens.
func TestReachLimits(t *testing.T) {
	now := time.Unix(100, 0)
	two, one := []bool{false, false}, []bool{false}
	if r := (Reach{Began: now}); r.StartLimit(now, two) != dynamic.DialLimit {
		t.Error("who need not listen yet has less time")
	}
	r := Reach{Listens: true, Began: now}
	for round := range 2 {
		if got := r.StartLimit(now, two); got != dynamic.DialsLimit/2 {
			t.Errorf("round %d: the first has %v", round, got)
		}
		if got := r.StartLimit(now.Add(time.Second), one); got != dynamic.DialsLimit-time.Second {
			t.Errorf("round %d: the second has %v", round, got)
		}
		r.AtStart(now, []dynamic.FailedCandidate{{}})
		now = now.Add(time.Minute)
	}
	refused := []dynamic.FailedCandidate{{DialResult: dynamic.DialResult{Failure: dynamic.NotListening}}}
	for _, begins := range []time.Duration{0, dynamic.DialsLimit - time.Millisecond, dynamic.DialsLimit} { // a host that answers is given up at the end of no round
		now := r.Began.Add(begins)
		if first, last := r.OnDemandLimit(now, two), r.OnDemandLimit(now.Add(time.Second), two[1:]); first != dynamic.DialsLimit/2 || last != dynamic.DialsLimit-time.Second {
			t.Errorf("on demand, a round after %v: %v, then %v", begins, first, last)
		}
		r.OnDemand(now.Add(time.Second), refused)
	}
	for _, c := range [][3]time.Duration{{-time.Hour, 0, ReachLimit}, {time.Minute, time.Second, time.Minute}, {time.Second, time.Hour, time.Hour}} {
		if got := OnDemandTime(c[0], c[1]); got != c[2] {
			t.Errorf("%v: %v", c, got)
		}
	}
}
