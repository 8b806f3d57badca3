package blame

import (
	"testing"
	"time"
)

var begin = time.Unix(1000, 0)

func TestTheHeaviestReportExplainsTheOthers(t *testing.T) {
	type report struct {
		after time.Duration
		r     Report
		what  string
	}
	for _, c := range []struct {
		name    string
		reports []report
		want    string
		at      time.Duration
	}{
		{"a connection alone", []report{{0, Report{Weight: Lost}, "a"}}, "a", Longest},
		{"a connection, then a death", []report{{0, Report{Weight: Lost}, "channel"}, {0, Report{Weight: Died}, "rank 1"}}, "rank 1", 100 * time.Millisecond},
		{"a death among consequences", []report{{0, Report{Weight: Consequence}, "rank 0"}, {1, Report{Weight: Died}, "rank 1"}, {2, Report{Weight: Consequence}, "rank 2"}}, "rank 1", 100*time.Millisecond + 1},
		{"a connection explains a consequence, at the time of the first", []report{{0, Report{Weight: Consequence}, "rank 0"}, {time.Second, Report{Weight: Lost}, "channel"}}, "channel", Longest},
		{"the first of equals", []report{{0, Report{Weight: Consequence}, "first"}, {1, Report{Weight: Consequence}, "second"}}, "first", Longest},
		{"the first death", []report{{0, Report{Weight: Died}, "first"}, {1, Report{Weight: Died}, "second"}}, "first", 100 * time.Millisecond},
		{"the death that was first, seen second", []report{{0, Report{Died, begin.Add(2)}, "second"}, {1, Report{Died, begin.Add(1)}, "first"}}, "first", 100 * time.Millisecond},
		{"nothing to find out", []report{{0, Report{Weight: Lost}, "channel"}, {1, Report{Weight: Decided}, "operator"}, {2, Report{Weight: Died}, "rank 1"}}, "operator", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var decision Decision[string]
			if _, ok := decision.Deadline(); ok {
				t.Error("a deadline before any report")
			}
			for _, x := range c.reports {
				decision.Report(begin.Add(x.after), x.r, x.what)
			}
			if at, ok := decision.Deadline(); ok {
				if decision.Tick(at.Add(-1)); decision.Made() {
					t.Error("a decision before the deadline")
				}
				if got := at.Sub(begin); got != c.at {
					t.Errorf("the decision is made after %v, want %v", got, c.at)
				}
				decision.Tick(at)
			}
			decision.Report(begin.Add(time.Hour), Report{Weight: Decided}, "too late")
			if got, ok := decision.Cause(); !ok || got != c.want {
				t.Errorf("%q %v is to blame, want %q", got, ok, c.want)
			}
		})
	}
}

func TestAllIsWell(t *testing.T) {
	var decision Decision[string]
	decision.Close()
	if what, ok := decision.Cause(); ok || !decision.Made() {
		t.Errorf("%q is to blame", what)
	}
	decision.Report(begin, Report{Weight: Decided}, "too late")
	if _, ok := decision.Cause(); ok {
		t.Error("a report after the end")
	}
}

func TestCloseDecides(t *testing.T) {
	var decision Decision[string]
	decision.Report(begin, Report{Weight: Lost}, "channel")
	if _, ok := decision.Cause(); ok {
		t.Error("a decision before its time")
	}
	decision.Close()
	if what, ok := decision.Cause(); !ok || what != "channel" {
		t.Errorf("%q %v", what, ok)
	}
}
