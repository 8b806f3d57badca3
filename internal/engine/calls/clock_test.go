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
			clock.runs, clock.rate = false, 0 // finds out
		} else {
			clock.ticks, clock.runs, clock.began, clock.rate = false, true, instant{}, 0
		}
		name := filepath.Join(t.TempDir(), "calls.json")
		file, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		line := Trace(&JSONList{F: file}, TimelineProc{}, true)
		t.Logf("ticks: %v", clock.ticks)
		outside := time.Now()
		begun := Begin()
		inside := time.Now()
		for time.Since(inside) < 20*time.Millisecond { // so long that a wrong unit is seen
		}
		least := time.Since(inside)
		End(Recv, begun, NoPeer, NoTag, -1, 0)
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

// TestSteady: times are read from the CPU's counter where the kernel does so, too, and in a virtual
// machine if the CPU says that the counter runs at one rate, always.
func TestSteady(t *testing.T) {
	const good, bad = "processor\t: 0\nflags\t\t: fpu constant_tsc rep_good nonstop_tsc\n", "processor\t: 0\nflags\t\t: fpu constant_tsc\n"
	for _, c := range []struct {
		counter, source, cpus string
		want                  bool
	}{
		{"tsc", "tsc\n", "", true}, {"tsc", "kvm-clock\n", good, true}, {"tsc", "kvm-clock\n", bad, false}, {"tsc", "kvm-clock\n", "", false},
		{"tsc", "hpet\n", good, false}, {"tsc", "", good, false},
		{"arch_sys_counter", "arch_sys_counter\n", "", true}, {"arch_sys_counter", "kvm-clock\n", good, false},
	} {
		if got := steady(c.counter, c.source, c.cpus); got != c.want {
			t.Errorf("%s, where the kernel uses %q, with %q: %v", c.counter, c.source, c.cpus, got)
		}
	}
}

// TestJump: where the counter has jumped, a timeline and the times of all calls go on at the rate
// so far.
func TestJump(t *testing.T) {
	at := time.Now()
	moment := func(after time.Duration, jumped int64) instant {
		return instant{1000 + int64(after)/2 + jumped, at.Add(after)}
	}
	for _, jumped := range []int64{1e12, -1e12} {
		line := &Timeline{began: moment(0, 0), start: 5e9, scale: 1}
		clock.began, clock.rate = moment(0, 0), 0
		for _, after := range []time.Duration{50 * time.Millisecond, time.Second} {
			line.adjustAt(moment(after, 0))
			scaleAt(moment(after, 0))
		}
		for _, after := range []time.Duration{2 * time.Second, 2*time.Second + 50*time.Millisecond, 3 * time.Second} {
			i := moment(after, jumped)
			line.adjustAt(i)
			if got, want := line.unix(i.ticks), 5e9+int64(after); got < want-10 || got > want+10 {
				t.Errorf("after %v, with a counter that has jumped by %d: it is %d, not %d", after, jumped, got, want)
			}
			if got := scaleAt(i); got < 1.99 || got > 2.01 {
				t.Errorf("after %v, with a counter that has jumped by %d: a tick is %v ns", after, jumped, got)
			}
		}
	}
}
