package report

import (
	"bytes"
	"encoding/xml"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

var rows = []Row{
	{ID: "A-1", Name: "first", Part: "fd", Rule: "it works", Verdict: transporttest.Pass, Log: []string{"one", "two"}, Seconds: 0.5},
	{ID: "A-2", Rule: "it works < well", Verdict: transporttest.Fail, Reason: "it did not\nat all"},
	{ID: "A-3", Verdict: transporttest.Skip, Reason: "not here"},
	{ID: "A-4", Verdict: "lost"},
}

func TestTallyAndMarks(t *testing.T) {
	if p, f, s := Tally(rows); p != 1 || f != 2 || s != 1 {
		t.Errorf("%d passed, %d failed, %d skipped", p, f, s)
	}
	for v, want := range map[transporttest.Verdict]string{transporttest.Pass: "ok", transporttest.Skip: "skip", transporttest.Fail: "FAIL", "": "...", "lost": "FAIL"} {
		if got := Mark(v); got != want {
			t.Errorf("%q is marked %q", v, got)
		}
	}
}

func TestJUnit(t *testing.T) {
	var b bytes.Buffer
	if err := WriteJUnit(&b, Suite{"them", time.Unix(0, 0), 1.5}, rows); err != nil {
		t.Fatal(err)
	}
	var x junitSuite
	if err := xml.Unmarshal(b.Bytes(), &x); err != nil || x.Tests != 4 || x.Failures != 2 || x.Skipped != 1 || x.Stamp != "1970-01-01T00:00:00" {
		t.Errorf("%v: %+v", err, x)
	}
	a, f, s := x.Cases[0], x.Cases[1], x.Cases[2]
	if a.Class != "them.fd" || a.Name != "A-1 first" || a.Out != "one\ntwo" || a.Time != "0.500" || a.Failure != nil || a.Skip != nil {
		t.Errorf("%+v", a)
	}
	if f.Class != "them" || f.Name != "A-2" || f.Failure == nil || f.Failure.Message != "it works < well" || f.Failure.Text != "it did not\nat all" {
		t.Errorf("%+v", f)
	}
	if s.Skip == nil || s.Skip.Message != "not here" || s.Failure != nil {
		t.Errorf("%+v", s)
	}
}

func TestFailuresAreShownWhole(t *testing.T) {
	var b bytes.Buffer
	Printer{&b}.Failures(append(rows, Row{ID: "A-5", Rule: "it ends", Verdict: transporttest.Fail, Reason: "it runs (the rule: it ends)", Remedy: "end it"}))
	if got := b.String(); got != "\nA-2\n  it did not\n  at all\n  the rule: it works < well\n\nA-5\n  it runs (the rule: it ends)\n  what to do: end it\n" {
		t.Errorf("%q", got)
	}
	if FirstLine("a\nb") != "a" || FirstLine("a") != "a" || !strings.HasPrefix(Mark("x"), "FAIL") {
		t.Error("first lines")
	}
}
