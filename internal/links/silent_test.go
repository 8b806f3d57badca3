package links

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestNotAsked: a site that nobody can ask from here has no fault, and its procs are no silent
// ones.
func TestNotAsked(t *testing.T) {
	sites := []Site{
		{Name: "alpha", Own: true, Procs: 1, Hosts: []string{"10.0.0.1"}},
		{Name: "beta", Client: 1, Own: true, First: 1, Procs: 1, Hosts: []string{"10.0.1.1"}},
	}
	why := ErrNotAsked.Error() + ": the route has direct = false"
	here := FoundNode{About: NodeInfo{Job: "ring", ID: "0123", PID: 7}, others: []HostAnswer{{About: NodeInfo{Job: "ring", ID: "0123", Client: 1}, Error: why, NotAsked: true}}}
	here.Node = &Node{NodeInfo: here.About, State: NodeRunning, Sites: sites, Procs: []Proc{{Rank: 0, State: ProcRunning}}}
	j := Merge(withOthers([]FoundNode{here}))[0]
	beta := &j.Sites[1]
	if beta.NotAsked != why || beta.Problem != "" || !beta.Since.IsZero() || beta.Answered() || !j.Sites[0].Answered() || beta.Answer("status") != "elsewhere, "+why {
		t.Errorf("%+v: %s", beta, beta.Answer("status"))
	}
	if len(beta.Ranks) != 1 || beta.Ranks[0].State != ProcNotAsked || beta.Ranks[0].Silent != why || beta.Ranks[0].Address != "10.0.1.1" {
		t.Errorf("%+v", beta.Ranks)
	}
}

// TestSilentHosts: procs whose node does not answer stay in the list, with their host, and since
// when.
func TestSilentHosts(t *testing.T) {
	since := time.Unix(5000, 0)
	sites := []Site{
		{Name: "alpha", Own: true, Procs: 3, Hosts: []string{"10.0.0.1", "10.0.0.2"}, HostProcs: []int{1, 2}},
		{Name: "beta", Client: 1, Own: true, First: 3, Procs: 2, Hosts: []string{"10.0.1.1"}},
		{Name: "foreign", Client: 2, First: 5, Procs: 1, Hosts: []string{"10.0.2.1"}},
	}
	about := func(client, number int) NodeInfo {
		return NodeInfo{Job: "ring", ID: "0123", Client: client, Number: number, Host: fmt.Sprintf("10.0.%d.%d", client, number+1)}
	}
	found := []FoundNode{
		{About: about(0, 0), Node: &Node{NodeInfo: about(0, 0), State: NodeRunning, Sites: sites, Procs: []Proc{{Rank: 0, PID: 7, State: ProcRunning}}}},
		{About: about(0, 1), Err: ErrSilent, Since: since, Forwarded: true},
		{About: NodeInfo{Job: "ring", ID: "0123", Client: 1}, Err: errors.New("no way"), Forwarded: true},
	}
	j := Merge(found)[0]
	var got []string
	for _, s := range j.Sites {
		for _, p := range s.Ranks {
			got = append(got, fmt.Sprintf("%s %d %d %s %s %s %v", s.Name, p.Rank, p.Host, p.Address, p.State, p.Silent, p.Since.Equal(since)))
		}
	}
	want := `alpha 0 0  running  false
alpha 1 1 10.0.0.2 not told the node does not answer true
alpha 2 1 10.0.0.2 not told the node does not answer true
beta 3 2 10.0.1.1 not told no way false
beta 4 2 10.0.1.1 not told no way false`
	if s := strings.Join(got, "\n"); s != want {
		t.Errorf("%s\nwant\n%s", s, want)
	}
	if !j.Sites[0].Since.Equal(since) || j.Sites[0].HostProblem(1) != ErrSilent.Error() || j.Sites[0].HostProblem(0) != "" {
		t.Errorf("%+v", j.Sites[0])
	}
	const identity = 1<<62 | 1<<40 // of a proc, as nodes before this sent it
	found[0].Node.Sites[0].PIDs, found[0].Node.Sites[1].PIDs = []int{7, 8, 9}, []int{identity, identity + 1}
	var pids []int
	for _, s := range Merge(found)[0].Sites {
		for _, p := range s.Ranks {
			pids = append(pids, p.PID)
		}
	}
	if s := fmt.Sprint(pids); s != "[7 8 9 0 0]" {
		t.Errorf("processes %s", s)
	}
	found[0].Node.Sites[0].HostProcs = nil // an older node: which host has which ranks is not known
	if p := Merge(found)[0].Sites[0].Ranks[1]; p.Host != -1 || p.State != ProcNotTold {
		t.Errorf("%+v", p)
	}
	found[1] = FoundNode{About: about(0, 1), Node: &Node{NodeInfo: about(0, 1), State: NodeRunning}, Forwarded: true}
	if p := Merge(found)[0].Sites[0].Ranks; len(p) != 1 {
		t.Errorf("all nodes of the site have answered: %+v", p)
	}
}

// TestUnderWay: what was sent and has not arrived is known if both ends count the same.
func TestUnderWay(t *testing.T) {
	for name, c := range map[string]struct {
		change func(a, b *View)
		want   string // from 1 to 2, and back
	}{
		"alike":              {func(_, _ *View) {}, "10 10"},
		"pure, other planes": {func(a, b *View) { a.Traffic.Pure, b.Traffic.Pure, b.Plane = true, true, "ring" }, "10 10"},
		"being made again":   {func(a, _ *View) { a.State = StateLost }, "10 10"},
		"one moment late":    {func(a, b *View) { b.Traffic.Received, a.Traffic.Received = number(600), number(310) }, "0 0"},
		"other planes":       {func(_, b *View) { b.Plane = "ring" }, "? ?"},
		"one is pure":        {func(a, _ *View) { a.Traffic.Pure = true }, "? ?"},
		"other transports":   {func(_, b *View) { b.Transport = "quic" }, "? ?"},
		"one end silent":     {func(_, b *View) { b.Traffic = nil }, "? ?"},
		"one end ended":      {func(a, _ *View) { a.State = StateEnded }, "? ?"},
		"not counted":        {func(a, _ *View) { a.Traffic.Sent = nil }, "? ?"},
	} {
		a, b := dialled(), accepted()
		c.change(&a, &b)
		p := Merge(nodes(a, b))[0].Pairs[0]
		if got := count(p.AToB.UnderWay, "") + " " + count(p.BToA.UnderWay, ""); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestChannelsUnderWay: the same of channels, each of which its two ends tell of.
func TestChannelsUnderWay(t *testing.T) {
	end := func(from, to int, sent, received uint64) Channel {
		return Channel{From: from, To: to, State: StateLinked, Plane: "fd", Bytes: Bytes{Sent: &sent, Received: &received}}
	}
	ended := end(4, 0, 9, 9)
	ended.Ended = true
	all := []Channel{end(0, 1, 100, 20), end(1, 0, 30, 70), end(0, 2, 5, 5), end(0, 3, 9, 1), end(3, 0, 1, 1), end(3, 0, 1, 1), end(0, 4, 9, 9), ended}
	channelsUnderWay(all)
	var got []string
	for _, c := range all {
		got = append(got, count(c.UnderWay, ""))
	}
	if s := strings.Join(got, " "); s != "30 10 ? ? ? ? ? ?" {
		t.Error(s)
	}
}
