package links

import (
	"strings"
	"testing"
	"time"
)

// TestLinksToOtherJobs: a job that runs here too is called by its name.
func TestLinksToOtherJobs(t *testing.T) {
	now := time.Unix(1000, 0)
	a, b := strings.Repeat("a1", 16), strings.Repeat("b2", 16)
	r := &Report{Jobs: []Job{
		{Name: "left", World: a, Ports: 1, WorldLinks: []WorldLink{
			{Local: 0, World: b, Peer: 3, State: StateLinked, Transport: "tcp", Plane: "fd", Since: now.Add(-5 * time.Second)},
			{Local: 1, World: strings.Repeat("c3", 16), Peer: 0, State: StateOpening},
		}},
		{Name: "right", World: b},
	}}
	var out strings.Builder
	WriteText(&out, r, Style{Now: now})
	for _, want := range []string{
		"other jobs: this one is world a1a1a1a1, 1 open ports",
		"0 --- 3", "world b2b2b2b2, job right", "tcp", "socket", "5s",
		"1 ... 0", "world c3c3c3c3 ", "being opened",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	if n := strings.Count(out.String(), "other jobs"); n != 1 {
		t.Errorf("a job that has met nobody says so:\n%s", out.String())
	}
}

// TestMergeOfLinksToOtherJobs: those of all nodes, in order.
func TestMergeOfLinksToOtherJobs(t *testing.T) {
	about := NodeInfo{Job: "j", ID: "1"}
	other := about
	other.Client = 1
	found := []FoundNode{
		{About: other, Node: &Node{NodeInfo: other, World: "a1", Ports: 1, WorldLinks: []WorldLink{{Local: 2, World: "b2"}, {Local: 1, World: "b2", Peer: 1}}}},
		{About: about, Node: &Node{NodeInfo: about, World: "a1", Ports: 2, WorldLinks: []WorldLink{{Local: 1, World: "b2"}}}},
	}
	jobs := Merge(found)
	if len(jobs) != 1 || jobs[0].World != "a1" || jobs[0].Ports != 3 || len(jobs[0].WorldLinks) != 3 {
		t.Fatalf("%+v", jobs)
	}
	for i, want := range []WorldLink{{Local: 1, World: "b2"}, {Local: 1, World: "b2", Peer: 1}, {Local: 2, World: "b2"}} {
		if jobs[0].WorldLinks[i] != want {
			t.Errorf("%d: %+v", i, jobs[0].WorldLinks[i])
		}
	}
}
