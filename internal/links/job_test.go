package links

import (
	"errors"
	"slices"
	"testing"
	"time"
)

func number(n uint64) *uint64 { return &n }

// nodes are the answers of alpha and beta about the pair of ranks 1 and 2.
func nodes(alpha, beta View) []FoundNode {
	sites := []Site{{Name: "alpha", Own: true, Procs: 2}, {Name: "beta", Client: 1, Own: true, First: 2, Procs: 2}, {Name: "gamma", Client: 2, Own: true, First: 4, Procs: 1}}
	a := NodeInfo{Job: "ring", ID: "0123", Site: "alpha", PID: 100, Parent: 99}
	b := NodeInfo{Job: "ring", ID: "0123", Site: "beta", Client: 1, PID: 101, Parent: 99}
	return []FoundNode{
		{Dir: "a", About: a, Node: &Node{NodeInfo: a, State: NodeRunning, Sites: sites, Procs: []Proc{{Rank: 0, PID: 200}, {Rank: 1, PID: 201}}, Views: []View{alpha}, Unused: 7}},
		{Dir: "b", About: b, Node: &Node{NodeInfo: b, State: NodeRunning, Sites: sites, Procs: []Proc{{Rank: 2, PID: 202}, {Rank: 3, PID: 203}}, Views: []View{beta}, Unused: 7}},
	}
}

func dialled() View {
	return View{
		Local: 1, Peer: 2, State: StateLinked, Transport: "tcp", Plane: "fd", Dialled: true, Since: time.Unix(1000, 0),
		Candidates: []Candidate{{Transport: "shm", Verdict: Failed}, {Transport: "unix", Verdict: Excluded}, {Transport: "tcp", Verdict: Chosen, Address: "b:1"}},
		Traffic:    &Traffic{Messages: 5, Bytes: Bytes{Sent: number(500), Received: number(300)}, RTT: 100 * time.Microsecond},
	}
}

func accepted() View {
	return View{
		Local: 2, Peer: 1, State: StateLinked, Transport: "tcp", Plane: "fd", Since: time.Unix(1001, 0),
		Candidates: []Candidate{{Transport: "tcp", Verdict: Chosen, Address: "a:1"}},
		Traffic:    &Traffic{Messages: 3, Bytes: Bytes{Sent: number(310), Received: number(490)}},
	}
}

func TestMergeOfBothEnds(t *testing.T) {
	jobs := Merge(nodes(dialled(), accepted()))
	if len(jobs) != 1 || len(jobs[0].Pairs) != 1 {
		t.Fatalf("%+v", jobs)
	}
	j, p := jobs[0], jobs[0].Pairs[0]
	if p.A != 1 || p.B != 2 || p.SiteA != "alpha" || p.SiteB != "beta" || p.State != StateLinked || p.Transport != "tcp" || p.Dialler != 1 {
		t.Errorf("pair %+v", p)
	}
	if *p.AToB.Messages != 5 || *p.BToA.Messages != 3 || *p.AToB.Bytes != 500 || *p.BToA.Bytes != 310 {
		t.Errorf("each end knows best what it has sent: %v %v", p.AToB, p.BToA)
	}
	if p.Speed == nil || p.Speed.How != HowKernel || p.Speed.HalfTrip != 50*time.Microsecond {
		t.Errorf("speed %+v", p.Speed)
	}
	if want := "tried first and failed: shm"; p.Why != want {
		t.Errorf("%q, want %q", p.Why, want)
	}
	// Ten pairs of five ranks, nine of them with a rank of alpha's or beta's other
	// than 1 and 2; the nodes have counted those between them twice.
	if j.Unused != 9 {
		t.Errorf("%d unused pairs, want 9", j.Unused)
	}
	if j.Sites[0].PID != 100 || !j.Sites[1].Here || j.Sites[2].Here {
		t.Errorf("sites %+v", j.Sites)
	}
}

func TestMergeOfOneEnd(t *testing.T) {
	p := Merge(nodes(dialled(), accepted())[1:])[0].Pairs[0]
	if p.Dialler != 1 || *p.AToB.Bytes != 490 || p.AToB.Messages != nil || *p.BToA.Messages != 3 {
		t.Errorf("%+v", p)
	}
	if want := "rank 1's node chose it and did not say why"; p.Why != want {
		t.Errorf("%q, want %q", p.Why, want)
	}
}

// TestMergeBelievesWhoIsFurther: one end has the link already, or not any more.
func TestMergeBelievesWhoIsFurther(t *testing.T) {
	opening := View{Local: 1, Peer: 2, State: StateOpening}
	ended := accepted()
	ended.State = StateEnded
	for _, c := range []struct {
		a, b View
		want State
	}{
		{opening, accepted(), StateLinked},
		{dialled(), ended, StateEnded},
		{opening, View{Local: 2, Peer: 1, State: StateUnused}, StateOpening},
		{opening, View{Local: 2, Peer: 1, State: StateAgents, Reason: "because"}, StateAgents},
	} {
		p := Merge(nodes(c.a, c.b))[0].Pairs[0]
		if p.State != c.want || (p.Transport == "tcp") != (c.want == StateLinked || c.want == StateEnded) || p.Why == "" {
			t.Errorf("%s and %s: %s by %q, because %q", c.a.State, c.b.State, p.State, p.Transport, p.Why)
		}
	}
}

func TestMergeKeepsJobsApart(t *testing.T) {
	one, two := nodes(dialled(), accepted()), nodes(dialled(), accepted())
	for i := range two {
		two[i].About.ID = "4567"
	}
	starting := []FoundNode{
		{Dir: "c", About: NodeInfo{Job: "ring", Site: "alpha", PID: 300, Parent: 9}, Node: &Node{State: NodeStarting}},
		{Dir: "d", About: NodeInfo{Job: "ring", Site: "beta", Client: 1, PID: 301, Parent: 9}, Node: &Node{State: NodeStarting}},
		{Dir: "e", About: NodeInfo{Job: "ring", Site: "alpha", PID: 302, Parent: 8}, Node: &Node{State: NodeStarting}},
		{Dir: "f", About: NodeInfo{Job: "ring", Site: "alpha", PID: 303, Parent: 8}, Node: &Node{State: NodeStarting}},
	}
	jobs := Merge(slices.Concat(one, two, starting))
	var sizes []int
	for _, j := range jobs {
		here := 0
		for _, s := range j.Sites {
			if s.Here {
				here++
			}
		}
		sizes = append(sizes, here)
	}
	if want := []int{2, 1, 1, 2, 2}; !slices.Equal(sizes, want) {
		t.Errorf("jobs of %v sites here, want %v", sizes, want)
	}
}

func TestMergeNamesTheSilent(t *testing.T) {
	found := nodes(dialled(), accepted())
	found[1].Node, found[1].Err = nil, errors.New("it sleeps")
	j := Merge(found)[0]
	if s := j.Sites[1]; !s.Here || s.Problem != "it sleeps" || s.PID != 101 {
		t.Errorf("%+v", s)
	}
	if j.Sites[0].Problem != "" {
		t.Errorf("%+v", j.Sites[0])
	}
}

func TestHasPID(t *testing.T) {
	j := Merge(nodes(dialled(), accepted()))[0]
	for pid, want := range map[int]bool{99: true, 100: true, 101: true, 203: true, 0: false, 5: false} {
		if j.HasPID(pid) != want {
			t.Errorf("process %d: %v", pid, !want)
		}
	}
}

// TestSpeedThroughTheAgents is estimated from their channel, whichever end tells.
func TestSpeedThroughTheAgents(t *testing.T) {
	for _, c := range []Channel{{From: 0, To: 1, RTT: 40 * time.Microsecond}, {From: 1, To: 0, RTT: 40 * time.Microsecond}} {
		found := nodes(View{Local: 1, Peer: 2, PeerHost: 1, State: StateAgents}, View{Local: 2, Peer: 1, LocalHost: 1, State: StateAgents})
		found[0].Node.Channels = []Channel{{From: 0, To: 2, RTT: time.Second}, c}
		p := Merge(found)[0].Pairs[0]
		if p.Speed == nil || p.Speed.How != HowChannel || p.Speed.HalfTrip != 20*time.Microsecond {
			t.Errorf("%+v: %+v", c, p.Speed)
		}
	}
}

// TestTimesOfAnotherClock: how long ago something was on another machine does not depend on what
// time it is there.
func TestTimesOfAnotherClock(t *testing.T) {
	here := time.Unix(5000, 0)
	ago := func(s int) time.Time { return time.Unix(900_000, 0).Add(-time.Duration(s) * time.Second) }
	n := Node{
		Now: ago(0), Procs: []Proc{{Since: ago(5)}, {}}, Transports: []Transport{{NextTry: ago(-7)}, {}}, WorldLinks: []WorldLink{{Since: ago(9)}},
		Views: []View{{Since: ago(3), Candidates: []Candidate{{At: ago(4)}}}, {}},
	}
	n.SetClock(here)
	for name, c := range map[string]struct {
		at   time.Time
		want int
	}{
		"now": {n.Now, 0}, "proc": {n.Procs[0].Since, 5}, "next try": {n.Transports[0].NextTry, -7}, "links to worlds": {n.WorldLinks[0].Since, 9},
		"view": {n.Views[0].Since, 3}, "try": {n.Views[0].Candidates[0].At, 4},
	} {
		if got := here.Sub(c.at); got != time.Duration(c.want)*time.Second {
			t.Errorf("%s: %v ago, not %d s", name, got, c.want)
		}
	}
	if !n.Views[1].Since.IsZero() || !n.Transports[1].NextTry.IsZero() {
		t.Error("there are times where there were none")
	}
}
