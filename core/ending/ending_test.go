package ending

import (
	"testing"
	"time"

	"github.com/openimpi/impi/core/startup"
)

var begin = time.Unix(1000, 0)

func at(w Precedence, text string) *Failure { return &Failure{Text: text, Precedence: w} }

func TestTheHeaviestReportExplainsTheOthers(t *testing.T) {
	type report struct {
		after time.Duration
		f     Failure
	}
	for _, c := range []struct {
		name    string
		reports []report
		want    string
		at      time.Duration
	}{
		{"a connection alone", []report{{0, Failure{Precedence: Lost, Text: "a"}}}, "a", MaxHoldTime / 2},
		{"a link between procs alone", []report{{0, Failure{Precedence: Unlinked, Text: "a"}}}, "a", MaxHoldTime},
		{"a connection, then a death", []report{{0, Failure{Precedence: Lost, Text: "channel"}}, {0, Failure{Precedence: Died, Text: "rank 1"}}}, "rank 1", 100 * time.Millisecond},
		{"a death among consequences", []report{{0, Failure{Precedence: Consequence, Text: "rank 0"}}, {1, Failure{Precedence: Died, Text: "rank 1"}}, {2, Failure{Precedence: Consequence, Text: "rank 2"}}}, "rank 1", 100*time.Millisecond + 1},
		{"a connection explains a consequence, at the time of the first", []report{{0, Failure{Precedence: Consequence, Text: "rank 0"}}, {time.Second, Failure{Precedence: Lost, Text: "channel"}}}, "channel", MaxHoldTime / 2},
		{"the first of equals", []report{{0, Failure{Precedence: Consequence, Text: "first"}}, {1, Failure{Precedence: Consequence, Text: "second"}}}, "first", MaxHoldTime / 2},
		{"the first death", []report{{0, Failure{Precedence: Died, Text: "first"}}, {1, Failure{Precedence: Died, Text: "second"}}}, "first", 100 * time.Millisecond},
		{"the death that was first, seen second", []report{{0, Failure{Precedence: Died, At: begin.Add(2), Text: "second"}}, {1, Failure{Precedence: Died, At: begin.Add(1), Text: "first"}}}, "first", 100 * time.Millisecond},
		{"nothing to find out", []report{{0, Failure{Precedence: Lost, Text: "channel"}}, {1, Failure{Precedence: Decided, Text: "operator"}}, {2, Failure{Precedence: Died, Text: "rank 1"}}}, "operator", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var e Ending
			if _, ok := e.Deadline(); ok {
				t.Error("a deadline before any report")
			}
			for _, x := range c.reports {
				e.Fail(begin.Add(x.after), &x.f)
			}
			if at, ok := e.Deadline(); ok {
				if e.Tick(at.Add(-1)); e.Made() {
					t.Error("a decision before the deadline")
				}
				if got := at.Sub(begin); got != c.at {
					t.Errorf("the decision is made after %v, want %v", got, c.at)
				}
				e.Tick(at)
			}
			e.Fail(begin.Add(time.Hour), at(Decided, "too late"))
			if got := e.Cause(); got == nil || got.Text != c.want {
				t.Errorf("%v is to blame, want %q", got, c.want)
			}
		})
	}
}

func TestNothingFails(t *testing.T) {
	var e Ending
	e.Close()
	if f := e.Cause(); f != nil || !e.Made() {
		t.Errorf("%v is to blame", f)
	}
	e.Fail(begin, at(Decided, "too late"))
	if e.Cause() != nil {
		t.Error("a report after the end")
	}
}

func TestCloseDecides(t *testing.T) {
	var e Ending
	e.Fail(begin, at(Lost, "channel"))
	if e.Cause() != nil {
		t.Error("a decision before its time")
	}
	e.Close()
	if f := e.Cause(); f == nil || f.Text != "channel" {
		t.Errorf("%v", f)
	}
}

// A proc that fails after its Finalize does not end the job, which fails by the first such one if
// by nothing else.
func TestFailuresAfterFinalize(t *testing.T) {
	var e Ending
	p := Proc{Name: "rank 1", Number: 1, State: Finished}
	if late := e.ProcEnded(begin, p, Exit{Text: "exited with status 0"}); late != nil {
		t.Errorf("a proc that ended in order: %v", late)
	}
	first := e.ProcEnded(begin, p, Exit{Text: "exited with status 4", Status: 4})
	if first == nil || first.Text != "rank 1 exited with status 4" || first.Status != 4 || first.Proc != 2 || e.FirstLate() != first {
		t.Errorf("the first: %+v", first)
	}
	p.Name = "rank 2"
	if second := e.ProcEnded(begin, p, Exit{Text: "exited with status 5", Status: 5}); second != nil {
		t.Errorf("the second is told: %v", second)
	}
	if _, waits := e.Deadline(); waits || e.Made() {
		t.Error("the job ends early")
	}
	e.Close()
	if o := e.Conclude(nil); o != (Outcome{first, true}) {
		t.Errorf("the job fails by %+v", o)
	}
	var failed Ending
	failed.ReportLate(at(Died, "late"))
	if o, worse := failed.Conclude(at(Died, "worse")), "worse"; o.Failure.Text != worse || o.Late {
		t.Errorf("the job fails by %+v, want %s", o, worse)
	}
	if late := failed.ProcEnded(begin, p, Exit{Status: 1}); late != nil {
		t.Errorf("after the end: %v", late)
	}
}

// An abort after Finalize ends the job, and is not lost if the job is over before that.
func TestAbortAfterFinalize(t *testing.T) {
	var e Ending
	late := e.ProcAborted(begin, Proc{Name: "rank 0", State: Finished}, 3, "why")
	at, waits := e.Deadline()
	if late == nil || late.Text != "rank 0 called MPI Abort with code 3: why" || !waits || at != begin.Add(Died.HoldTime()) {
		t.Errorf("%v, until %v %v", late, at, waits)
	}
	if o := e.Conclude(nil); o != (Outcome{late, true}) {
		t.Errorf("%+v", o)
	}
	var ended Ending
	late = ended.ProcAborted(begin, Proc{Name: "rank 0", State: Finished}, 3, "why")
	ended.Close()
	if o := ended.Conclude(late); o != (Outcome{late, false}) {
		t.Errorf("an abort that has ended the job: %+v", o)
	}
}

// A world that ended by the failure of one that it had spawned has not failed late: those that
// spawned it fail by it, too.
func TestInheritedFailureIsPassedOn(t *testing.T) {
	var parent, grandparent Ending
	f := at(Died, "a grandchild")
	parent.Inherit(begin, Outcome{Failure: f})
	parent.Close()
	if parent.Cause() != f {
		t.Fatalf("%v", parent.Cause())
	}
	grandparent.Inherit(begin, parent.Conclude(f))
	grandparent.Close()
	if grandparent.Cause() != f {
		t.Errorf("the grandparents' job goes on: %v", grandparent.Cause())
	}
}

func TestInherit(t *testing.T) {
	for _, c := range []struct {
		name         string
		over, late   bool
		fails, notes bool
		passesOn     bool
	}{
		{name: "while the job runs", fails: true, notes: true},
		{name: "from a job that had ended, while the job runs", late: true, notes: true},
		{name: "when the job is over", over: true, passesOn: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var e Ending
			if c.over {
				e.Conclude(nil)
			}
			passesOn := e.Inherit(begin, Outcome{at(Decided, "spawn1"), c.late})
			if passesOn != c.passesOn || e.Made() != c.fails || (e.FirstLate() != nil) != c.notes {
				t.Errorf("passed on: %v, fails: %v, noted: %v", passesOn, e.Made(), e.FirstLate())
			}
		})
	}
}

func TestOfWorld(t *testing.T) {
	own, told, server := at(Died, "own"), RemoteFailure("told"), at(Decided, "server")
	late := Outcome{at(Died, "late"), true}
	lost := &Failure{Text: "all of it is lost", Cause: startup.ErrLost}
	if got := WorldOutcome(nil, lost, false); got != (Outcome{Failure: lost}) {
		t.Errorf("the job of the parents ends with lost procs: %+v", got)
	}
	for _, c := range []struct {
		parts  []Outcome
		server *Failure
		want   Outcome
	}{
		{nil, lost, Outcome{lost, true}},
		{[]Outcome{{Failure: own}}, lost, Outcome{Failure: own}},
		{nil, nil, Outcome{}},
		{[]Outcome{{}, {}}, server, Outcome{Failure: server}},
		{[]Outcome{{Failure: told}, {Failure: own}}, server, Outcome{Failure: own}},
		{[]Outcome{{Failure: own}, {Failure: told}}, server, Outcome{Failure: own}},
		{[]Outcome{{Failure: told}, {}}, server, Outcome{Failure: told}},
		{[]Outcome{{}, late}, nil, late},
	} {
		if got := WorldOutcome(c.parts, c.server, true); got != c.want {
			t.Errorf("%+v, server %v: %+v, want %+v", c.parts, c.server, got, c.want)
		}
	}
}

func TestDeclines(t *testing.T) {
	head := FailedSite{Head: true}
	if f := (&Failure{}); !f.Declines(head) || f.Declines(FailedSite{}) || (&Failure{Remote: true}).Declines(head) || (*Failure)(nil).Declines(head) {
		t.Error("only the head of a site says why the site does not come, and only what others do not know")
	}
	for what, a := range map[string]FailedSite{
		"it has joined": {Head: true, Joined: true}, "it is spawned": {Head: true, Spawned: true},
		"nobody waits for it": {Head: true, ServesItself: true}, "it may be there already": {Head: true, AddressInUse: true},
	} {
		if (&Failure{}).Declines(a) {
			t.Errorf("%s: the server is told", what)
		}
	}
}
