package links

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// asked is what nodes were asked for.
type asked struct {
	mu   sync.Mutex
	list []Request
}

func (a *asked) node(answer Answer) func(context.Context, Request) Answer {
	return func(_ context.Context, r Request) Answer {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.list = append(a.list, r)
		return answer
	}
}

// TestMeasureOncePerPath: pairs of the same hosts and transport share a probe,
// which the node that dialled makes.
func TestMeasureOncePerPath(t *testing.T) {
	var a asked
	dir := serve(t, a.node(Answer{Measure: &Measure{HalfTrip: time.Microsecond, Rate: 5e9, Plane: "fd"}}))
	found := nodes(dialled(), accepted())
	found[0].Dir, found[1].Dir = dir, "/nonexistent"
	second := dialled()
	second.Local = 0
	unused := View{Local: 0, Peer: 3, State: StateUnused}
	found[0].Node.Views = append(found[0].Node.Views, second, unused)
	jobs := Merge(found)
	MeasureAll(context.Background(), jobs, found, time.Minute, false)
	if len(a.list) != 1 || a.list[0].Op != OpProbe || a.list[0].Peer != 2 || a.list[0].Transport != "tcp" {
		t.Fatalf("asked %+v", a.list)
	}
	for _, p := range jobs[0].Pairs {
		if p.State == StateUnused {
			if p.Speed != nil {
				t.Errorf("%s was measured", p.ends())
			}
			continue
		}
		if p.Speed == nil || p.Speed.How != HowProbe || p.Speed.HalfTrip != time.Microsecond || p.Speed.Rate != 5e9 {
			t.Errorf("%s: %+v", p.ends(), p.Speed)
		}
	}
}

func TestMeasureSaysWhyNot(t *testing.T) {
	var a asked
	dir := serve(t, a.node(Answer{Error: "the peer refused"}))
	found := nodes(dialled(), accepted())
	found[0].Dir = dir
	jobs := Merge(found)
	MeasureAll(context.Background(), jobs, found, time.Minute, false)
	if s := jobs[0].Pairs[0].Speed; s == nil || s.Problem != "not measured: the peer refused" || s.How != HowKernel || s.HalfTrip != 50*time.Microsecond {
		t.Errorf("%+v", s)
	}
}

// TestMeasureIsBounded: a node that never answers costs the limit and no more,
// and the pairs behind it say that there was no time.
func TestMeasureIsBounded(t *testing.T) {
	release := make(chan struct{})
	dir := serve(t, func(context.Context, Request) Answer { <-release; return Answer{} })
	defer close(release)
	found := nodes(dialled(), accepted())
	found[0].Dir = dir
	other := dialled()
	other.Peer, other.Candidates = 3, []Candidate{{Transport: "tcp", Verdict: Chosen, Address: "b:2"}}
	found[0].Node.Views = append(found[0].Node.Views, other)
	jobs := Merge(found)
	MeasureAll(context.Background(), jobs, found, 30*time.Millisecond, false)
	for _, p := range jobs[0].Pairs {
		if p.Speed == nil || p.Speed.Problem != "not measured: no answer in time" {
			t.Errorf("%s: %+v", p.ends(), p.Speed)
		}
	}
}

// TestMeasureWhatElseIsPossible: by the end that dialled; whoever was turned down
// already is not asked again.
func TestMeasureWhatElseIsPossible(t *testing.T) {
	var a asked
	dir := serve(t, a.node(Answer{Measure: &Measure{HalfTrip: time.Microsecond, Rate: 5e9}}))
	found := nodes(dialled(), accepted())
	found[0].Dir, found[1].Dir = dir, dir
	for i := range found {
		v := &found[i].Node.Views[0]
		v.Candidates = append(v.Candidates, Candidate{Transport: "quic", Verdict: Possible, Address: "q:1"})
	}
	unused := View{Local: 0, Peer: 3, State: StateUnused, Candidates: []Candidate{{Transport: "web", Verdict: Possible, Address: "w:1"}, {Transport: "shm", Verdict: Excluded}}}
	found[0].Node.Views = append(found[0].Node.Views, unused)
	jobs := Merge(found)
	MeasureAll(context.Background(), jobs, found, time.Minute, true)
	var got []string
	for _, r := range a.list {
		got = append(got, itoa(r.Local)+" "+r.Transport)
	}
	if want := []string{"1 tcp", "0 web", "1 quic"}; !slices.Equal(got, want) {
		t.Errorf("asked for %q, want %q", got, want)
	}
	if c := jobs[0].Pairs[1].Views[0].Candidates[3]; c.Probe == nil || c.Probe.HalfTrip != time.Microsecond {
		t.Errorf("%+v", c)
	}
	if c := jobs[0].Pairs[0].Views[0].Candidates[0]; c.Probe == nil || c.Probe.Problem != "" {
		t.Errorf("%+v", c)
	}
}

// TestMeasureOneEnd: of a pair with another machine's site, which was asked by a node of this one,
// this end measures, also if the other one has dialled.
func TestMeasureOneEnd(t *testing.T) {
	var a asked
	dir := serve(t, a.node(Answer{Measure: &Measure{HalfTrip: time.Microsecond, Rate: 5e9}}))
	found := nodes(dialled(), accepted())
	dialler := 0
	if !found[0].Node.Views[0].Dialled {
		dialler = 1
	}
	found[0].Dir, found[1].Dir, found[dialler].Forwarded = dir, dir, true
	here := &found[1-dialler].Node.Views[0]
	here.Candidates = append(here.Candidates, Candidate{Transport: "tcp", Verdict: Chosen, Address: "b:1"}, Candidate{Transport: "quic", Verdict: Possible, Address: "q:1"})
	jobs := Merge(found)
	MeasureAll(context.Background(), jobs, found, time.Minute, true)
	var got []string
	for _, r := range a.list {
		got = append(got, itoa(r.Local)+" "+r.Transport)
	}
	if want := []string{itoa(here.Local) + " tcp", itoa(here.Local) + " quic"}; !slices.Equal(got, want) {
		t.Errorf("asked for %q, want %q", got, want)
	}
	Advise(&jobs[0])
	for _, s := range jobs[0].Pairs[0].Faster {
		if strings.Contains(s, "both nodes run on this machine") {
			t.Error(s)
		}
	}
}
