package links

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestLosses: what a job goes on without is lost, since when a node has first heard of it, and not
// silent.
func TestLosses(t *testing.T) {
	sites := []Site{
		{Name: "alpha", Own: true, Procs: 2, Hosts: []string{"10.0.0.1"}},
		{Name: "beta", Client: 1, Own: true, First: 2, Procs: 2, Hosts: []string{"10.0.1.1"}},
		{Name: "gamma", Client: 2, Own: true, First: 4, Procs: 1, Hosts: []string{"10.0.2.1"}},
	}
	about := func(client int) NodeInfo { return NodeInfo{Job: "ring", ID: "0123", Client: client} }
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	killed := Loss{First: 1, Last: 1, At: at(30), Why: "it was killed"}
	heard := killed
	heard.At = at(31)
	found := []FoundNode{
		{About: about(0), Node: &Node{NodeInfo: about(0), State: NodeRunning, Sites: sites, Lost: []Loss{killed, {First: 2, Last: 3, Host: true, At: at(40), Why: "its channel ended"}}, Procs: []Proc{
			{Rank: 0, State: ProcRunning}, {Rank: 1, State: ProcEnded, Ended: "was killed by SIGKILL"},
		}}},
		{About: about(1), Err: ErrSilent, Forwarded: true},
		{About: about(2), Node: &Node{NodeInfo: about(2), State: NodeRunning, Lost: []Loss{heard}, Procs: []Proc{{Rank: 4, State: ProcRunning}}}, Forwarded: true},
	}
	j := Merge(found)[0]
	var got []string
	for i := range j.Sites {
		for _, p := range j.Sites[i].Ranks {
			s := fmt.Sprintf("%d %s %d", p.Rank, p.State, p.Host)
			if p.Lost != nil {
				s += fmt.Sprintf(" since %d: %s", p.Lost.At.Unix(), p.Lost.Why)
			}
			got = append(got, s)
		}
	}
	want := "0 running 0, 1 lost 0 since 30: it was killed, 2 lost 1 since 40: its channel ended, 3 lost 1 since 40: its channel ended, 4 running 0"
	if s := strings.Join(got, ", "); s != want {
		t.Errorf("%s\nwant\n%s", s, want)
	}
	if b := &j.Sites[1]; b.Problem != "" || b.Lost == nil || !strings.HasPrefix(b.Answer("status"), "lost since ") || !strings.HasSuffix(b.Answer("status"), " ago: its channel ended") {
		t.Errorf("%+v: %s", b, b.Answer("status"))
	}
	found[0].Node.Lost[1].Host = false // all of them have died, and their node should answer
	if b := Merge(found)[0].Sites[1]; b.Problem == "" || b.Lost != nil {
		t.Errorf("%+v", b)
	}
	found[1].Err = errors.New("no way")
	found[0].Node.SetClock(time.Time{}) // a node that does not tell its time
	if !found[0].Node.Lost[0].At.Equal(at(30)) {
		t.Error(found[0].Node.Lost[0].At)
	}
	found[2].Node.Now = at(100)
	found[2].Node.SetClock(at(90))
	if !found[2].Node.Lost[0].At.Equal(at(21)) {
		t.Error(found[2].Node.Lost[0].At)
	}
}

// TestLossOfAHost: of a site that has a node for each host one host is lost, which nobody asks any
// more; another one that does not answer is a problem as ever.
func TestLossOfAHost(t *testing.T) {
	site := Site{Name: "alpha", Own: true, Procs: 5, HostProcs: []int{2, 1, 2}, Hosts: []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}}
	about := func(host int) NodeInfo {
		return NodeInfo{Job: "ring", ID: "0123", Host: site.Hosts[host], Number: host}
	}
	found := []FoundNode{
		{About: about(0), Node: &Node{NodeInfo: about(0), State: NodeRunning, Sites: []Site{site}, Procs: []Proc{{Rank: 0, State: ProcRunning}, {Rank: 1, State: ProcRunning}},
			Lost: []Loss{{First: 2, Last: 2, Host: true, At: time.Unix(40, 0), Why: "its connection has ended"}}}},
		{About: about(1), Err: ErrSilent, Forwarded: true},
		{About: about(2), Node: &Node{NodeInfo: about(2), State: NodeRunning, Procs: []Proc{{Rank: 3, State: ProcRunning}, {Rank: 4, State: ProcRunning}}}, Forwarded: true},
	}
	p := Merge(found)[0].Sites[0]
	if p.Problem != "" || p.Lost != nil || p.Nodes[1].Lost == nil || p.Nodes[1].Problem != "" || p.Nodes[0].Lost != nil || p.Nodes[2].Lost != nil {
		t.Errorf("%+v", p)
	}
	if s := p.Answer("status"); !strings.HasPrefix(s, "2 nodes running; host 10.0.0.2 lost since ") || !strings.HasSuffix(s, " ago: its connection has ended") {
		t.Error(s)
	}
	found[2] = FoundNode{About: about(2), Err: ErrSilent, Forwarded: true}
	if p := Merge(found)[0].Sites[0]; p.Problem != "host 10.0.0.3: "+ErrSilent.Error() || p.Nodes[2].Problem == "" {
		t.Errorf("%+v", p)
	}
}
