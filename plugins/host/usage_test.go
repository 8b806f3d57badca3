package host

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// What a plugin takes is seen from outside, and grows when it gets more.
func TestUsage(t *testing.T) {
	w := builtin("tcp", "")
	p := w.start(t)
	before, err := p.Usage()
	if err != nil || before.Resident < 1<<20 || before.Own <= 0 || before.Own > before.Resident || before.Descriptors < 4 || before.Threads < 2 {
		t.Fatalf("%+v, %v", before, err)
	}
	listen(t, p)
	if after, err := p.Usage(); err != nil || after.Descriptors <= before.Descriptors {
		t.Errorf("with a listener %+v, %v, before %+v", after, err, before)
	}
	if text := before.String(); !strings.Contains(text, " MB (") || !strings.Contains(text, " descriptors") {
		t.Error(text)
	}
}

func TestUsageOfNoProcess(t *testing.T) {
	w := builtin("tcp", "")
	p := w.start(t)
	strike(t, p, syscall.SIGKILL)
	w.reach(t, StateBackoff)
	if u, err := p.Usage(); err == nil {
		t.Errorf("%+v", u)
	}
}

func TestCPUOf(t *testing.T) {
	text := "7 (odd) name) S 1 7 7 0 -1 4194560 100 0 0 0 150 25 0 0 20 0 8 0 900 1 2\n"
	if d, err := cpuOf(text); d != 1750*time.Millisecond || err != nil {
		t.Errorf("%v, %v", d, err)
	}
	for _, bad := range []string{"", "7 (x) S 1", strings.Replace(text, "150", "x", 1)} {
		if d, err := cpuOf(bad); err == nil {
			t.Errorf("%q: %v", bad, d)
		}
	}
}

// TestResent: what a plugin had to send again counts on when it is started again, and never falls.
func TestResent(t *testing.T) {
	var r resent
	first, second := new(instance), new(instance)
	for i, step := range []struct {
		of      *instance
		n, want uint64
	}{{first, 3, 3}, {first, 7, 7}, {first, 6, 7}, {second, 0, 7}, {second, 2, 9}} {
		if r.told(step.of, step.n); r.before+r.now != step.want {
			t.Errorf("step %d: %d, want %d", i, r.before+r.now, step.want)
		}
	}
}
