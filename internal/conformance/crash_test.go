package conformance

import (
	"errors"
	"strings"
	"testing"

	"github.com/openimpi/impi/plugins/host"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

// What a process logs and survives is no crash, whatever it looks like; what a sanitizer says is an
// error of it.
func TestWhatIsNoCrash(t *testing.T) {
	for fault, verdict := range map[string]transporttest.Verdict{"banner": transporttest.Pass, "sanitizer": transporttest.Fail} {
		r := judged(t, fault, "P-CALL-03|T-ORDER-03")
		for _, x := range r.Results {
			found := strings.Contains(x.Reason, "AddressSanitizer: heap-use-after-free") && strings.Contains(x.Reason, x.Rule)
			if node := x.ID == "P-CALL-03"; node && x.Verdict != verdict || !node && x.Verdict != transporttest.Pass || found != (x.Verdict == transporttest.Fail) {
				t.Errorf("%s: %+v", fault, x)
			}
		}
	}
}

// The end of a process is told with its status, under a node's client and under none, and the
// remedy is not the one for processes that live.
func TestEndIsTold(t *testing.T) {
	r := judged(t, "exits", "P-CALL-03|T-ORDER-03")
	if r.Failed != 2 {
		t.Fatalf("%+v", r.Results)
	}
	for _, x := range r.Results {
		if !strings.Contains(x.Reason, "exited with status 3") || !strings.Contains(x.Reason, x.Rule) || x.Remedy != crashRemedy {
			t.Errorf("%+v", x)
		}
	}
}

// Processes that a case kills have not crashed.
func TestKillsAreNoCrashes(t *testing.T) {
	if r := judged(t, "", "P-LIFE-04"); r.Passed != 1 {
		t.Errorf("%+v", r.Results)
	}
}

func TestCrashIn(t *testing.T) {
	for _, c := range []struct {
		lines string
		died  bool
		want  string
	}{
		{"==== acme fabric 1.0 ====", true, ""},
		{"==7==ERROR: AddressSanitizer: SEGV\nmore", false, "==7==ERROR: AddressSanitizer: SEGV\nmore"},
		{"hello\npanic: no\n\ngoroutine 1", true, "panic: no\n\ngoroutine 1"},
		{"hello\npanic: no\n\ngoroutine 1", false, ""},
		{"Traceback (most recent call last):", false, ""},
		{"Traceback (most recent call last):", true, "Traceback (most recent call last):"},
	} {
		if got := crashIn(strings.Split(c.lines, "\n"), c.died); got != c.want {
			t.Errorf("%q, %v: %q", c.lines, c.died, got)
		}
	}
}

// One end of a process is one crash, and ends that the case causes are none.
func TestEndsOfProcesses(t *testing.T) {
	died := func(problem string) error { return &host.Error{Kind: host.ErrCrashed, Problem: problem, Output: "bye"} }
	first := died("was killed by signal 11 (segmentation fault)")
	c := &crashes{}
	c.kills(8)
	watch := c.watch()
	for _, s := range []host.Status{
		{PID: 7}, {LastErr: first}, {LastErr: first}, {PID: 8, LastErr: first}, {LastErr: died("was killed by signal 9 (killed)")},
		{LastErr: errors.New("other")}, {LastErr: &host.Error{Kind: host.ErrHung, Output: "panic: later"}},
	} {
		watch(s)
	}
	if len(c.texts) != 1 || c.texts[0] != "it was killed by signal 11 (segmentation fault)\nbye" {
		t.Errorf("%q", c.texts)
	}
	for verdict, before := range map[transporttest.Verdict]string{transporttest.Pass: "", transporttest.Fail: "X-1: it hangs (the rule: it moves)"} {
		res := Result{ID: "X-1", Rule: "it moves", Plane: transports.PlaneRing, Verdict: verdict, Reason: before, Remedy: "look for a wake-up"}
		c.judge(&res)
		if res.Verdict != transporttest.Fail || !strings.HasPrefix(res.Reason, "X-1: ") || !strings.Contains(res.Reason, "the rule: it moves") ||
			!strings.Contains(res.Reason, "signal 11") || res.Remedy != crashRemedy {
			t.Errorf("%+v", res)
		}
	}
}
