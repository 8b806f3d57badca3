package calls

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestTimes: a timeline has the times of the machine's clock, whatever they are read from.
func TestTimes(t *testing.T) {
	for _, ticks := range []bool{true, false} {
		if mem = nil; ticks {
			clock.runs = false // finds out
		} else {
			clock.ticks, clock.runs, clock.began = false, true, instant{}
		}
		name := filepath.Join(t.TempDir(), "calls.json")
		file, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		line := Trace(&List{F: file}, Place{}, true)
		t.Logf("ticks: %v", clock.ticks)
		outside := time.Now()
		begun := Begin()
		inside := time.Now()
		for time.Since(inside) < 20*time.Millisecond { // so long that a wrong unit is seen
		}
		least := time.Since(inside)
		End(Recv, begun, Nobody, NoTag, -1, 0)
		most := time.Since(outside)
		line.Close()
		on.Store(0)
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var all []shown
		if err := json.Unmarshal(b, &all); err != nil || len(all) != 3 {
			t.Fatalf("%v in %s", err, b)
		}
		const slack = 1.01
		x, unix := all[2], float64(outside.UnixNano())/1e3
		if us := x.Dur; us*slack < float64(least)/1e3 || us > slack*float64(most)/1e3 {
			t.Errorf("a call of %v to %v took %v us", least, most, us)
		}
		if x.Ts < unix-1e3 || x.Ts > unix+1e3+float64(inside.Sub(outside))/1e3 {
			t.Errorf("a call at %v us began at %v", unix, x.Ts)
		}
	}
}

// TestRate: the rate of the counter is that between two moments.
func TestRate(t *testing.T) {
	at := time.Now()
	i := instant{1000, at}
	for _, c := range []struct {
		later instant
		want  float64
	}{
		{instant{3000, at.Add(1000)}, 0.5}, {instant{1500, at.Add(1000)}, 2}, {instant{1000, at.Add(1000)}, 1}, {instant{2000, at}, 1},
	} {
		if got := i.rateUntil(c.later); got != c.want {
			t.Errorf("%d ticks in %v: %v ns each", c.later.ticks-i.ticks, c.later.at.Sub(at), got)
		}
	}
}
