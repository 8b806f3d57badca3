package ui

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/status"
)

func number(n uint64) *uint64 { return &n }

// ofHosts is a pair of ranks on two hosts, with what was sent each way.
func ofHosts(a, b, hostA, hostB int, state links.State, there, back links.Count) links.Pair {
	return links.Pair{A: a, B: b, State: state, Transport: "tcp", AToB: there, BToA: back, Views: []links.View{{Local: b, Peer: a, LocalHost: hostB, PeerHost: hostA}}}
}

// sites is a job of alpha, with hosts 0 and 1, and beta with host 2, a rank on each.
func sites(state string) *status.Job {
	rank := func(i int) links.Proc {
		return links.Proc{Rank: i, Host: i, State: links.ProcRunning, Wait: links.Waiting{State: state}}
	}
	return &status.Job{Job: links.Job{Sites: []links.SiteState{
		{Site: links.Site{Name: "alpha", Own: true, Procs: 2, Hosts: []string{"10.0.0.1", "10.0.0.2"}}, Ranks: []links.Proc{rank(0), rank(1)}},
		{Site: links.Site{Name: "beta", Client: 1, Own: true, First: 2, Procs: 1, Hosts: []string{"10.0.0.3"}}, Ranks: []links.Proc{rank(2)}},
	}}}
}

// TestPaths: a path between sites has the worst state of its links and channels, and what is known
// of what is under way on them.
func TestPaths(t *testing.T) {
	stuck := count(1, 1000)
	stuck.UnderWay, stuck.NoArrivalFor = number(400), 3*time.Second
	none := count(0, 0)
	none.UnderWay = number(0)
	unknown := count(2, 50)
	for name, c := range map[string]struct {
		state    string // of the procs
		pairs    []links.Pair
		channels []links.Channel
		hosts    []links.HostCounts
		want     path // between the sites
	}{
		"linked": {"asleep", []links.Pair{ofHosts(0, 2, 0, 2, links.StateLinked, count(1, 10), none)}, nil, nil, path{
			A: 0, B: 1, State: pathLinked, Links: []linkSum{{What: "tcp", State: pathLinked, N: 1}}, Messages: [2]uint64{1, 0}, Bytes: [2]uint64{10, 0}}},
		"stalled": {"asleep", []links.Pair{ofHosts(0, 2, 0, 2, links.StateLinked, none, stuck), ofHosts(1, 2, 1, 2, links.StateLinked, unknown, none)}, nil, nil, path{
			A: 0, B: 1, State: pathStalled, Links: []linkSum{{What: "tcp", State: pathLinked, N: 2}}, Messages: [2]uint64{2, 1}, Bytes: [2]uint64{50, 1000}, UnderWay: [2]uint64{0, 400}, Still: 3}},
		"the receiver computes": {"computing", []links.Pair{ofHosts(0, 2, 0, 2, links.StateLinked, none, stuck)}, nil, nil, path{
			A: 0, B: 1, State: pathLinked, Links: []linkSum{{What: "tcp", State: pathLinked, N: 1}}, Messages: [2]uint64{0, 1}, Bytes: [2]uint64{0, 1000}, UnderWay: [2]uint64{0, 400}}},
		"lost": {"asleep", []links.Pair{ofHosts(0, 2, 0, 2, links.StateLost, unknown, unknown), ofHosts(1, 2, 1, 2, links.StateLinked, none, none)}, nil, nil, path{
			A: 0, B: 1, State: pathLost, Links: []linkSum{{What: "tcp", State: pathLost, N: 1}, {What: "tcp", State: pathLinked, N: 1}}, Messages: [2]uint64{2, 2}, Bytes: [2]uint64{50, 50}, Unknown: 1}},
		"by a channel, which one end has lost": {"asleep", []links.Pair{ofHosts(0, 2, 0, 2, links.StateAgents, unknown, none)}, []links.Channel{
			{From: 0, To: 2, State: links.StateLinked, Transport: "tcp", UnderWay: number(7), NoArrivalFor: time.Hour},
			{From: 2, To: 0, State: links.StateLost, Transport: "tcp", Lost: "a cable", UnderWay: number(0), Resumes: 1},
		}, nil, path{
			A: 0, B: 1, State: pathLost, Links: []linkSum{{What: "tcp", State: pathLost, Channel: true, N: 1, Resumes: 1}, {What: "agents", State: pathLinked, N: 1}},
			Messages: [2]uint64{2, 0}, Bytes: [2]uint64{50, 0}, UnderWay: [2]uint64{7, 0}, Still: 3600, Notes: []string{"channel of host 2 to host 0: a cable"}}},
		"a channel of which one end tells": {"asleep", nil, []links.Channel{{From: 2, To: 0, State: links.StateLinked, Transport: "tcp"}}, nil, path{
			A: 0, B: 1, State: pathLinked, Links: []linkSum{{What: "tcp", State: pathLinked, Channel: true, N: 1}}, Unknown: 1}},
		"counted by both hosts": {"asleep", nil, nil, []links.HostCounts{
			{From: 0, To: 2, Messages: 5, Data: 500, Links: []links.LinkCount{{State: links.StateLinked, Transport: "tcp", Pairs: 9}, {State: links.StateUnused, Pairs: 3}}},
			{From: 2, To: 0, Messages: 6, Data: 600, Links: []links.LinkCount{{State: links.StateLost, Transport: "tcp", Pairs: 2, Resumes: 4}, {State: links.StateLinked, Transport: "tcp", Pairs: 7}}},
		}, path{
			A: 0, B: 1, State: pathLost, Links: []linkSum{{What: "tcp", State: pathLost, N: 2, Resumes: 4}, {What: "tcp", State: pathLinked, N: 7}}, Messages: [2]uint64{5, 6}, Bytes: [2]uint64{500, 600}, Unknown: 9}},
		"counted alike": {"asleep", nil, nil, []links.HostCounts{
			{From: 0, To: 2, Links: []links.LinkCount{{State: links.StateLinked, Transport: "tcp", Pairs: 9, Counted: 9, Sent: 800, Received: 30}}},
			{From: 2, To: 0, Links: []links.LinkCount{{State: links.StateLinked, Transport: "tcp", Pairs: 9, Counted: 9, Sent: 90, Received: 500}}},
		}, path{
			A: 0, B: 1, State: pathLinked, Links: []linkSum{{What: "tcp", State: pathLinked, N: 9}}, UnderWay: [2]uint64{300, 60}}},
		"counted by one": {"asleep", nil, nil, []links.HostCounts{{From: 2, To: 1, Messages: 6, Data: 600, Received: 44, Links: []links.LinkCount{{State: links.StateLinked, Transport: "tcp", Pairs: 1}}}}, path{
			A: 0, B: 1, State: pathLinked, Links: []linkSum{{What: "tcp", State: pathLinked, N: 1}}, Messages: [2]uint64{0, 6}, Bytes: [2]uint64{44, 600}, Unknown: 1}},
		"what cannot be": {"asleep", nil, []links.Channel{{From: 0, To: 7}, {From: -1, To: 2}}, []links.HostCounts{{From: 0, To: 2, Links: []links.LinkCount{{State: "x", Pairs: -4}, {State: links.StateOpening, Pairs: 1}}}, {From: 3, To: 0}}, path{
			A: 0, B: 1, State: pathOpening, Links: []linkSum{{State: pathOpening, N: 1}}}},
	} {
		j := sites(c.state)
		j.Pairs, j.Channels, j.ByHost = c.pairs, c.channels, c.hosts
		if c.want.Notes == nil {
			c.want.Notes = []string{}
		}
		got, _ := pathsOf(j)
		if len(got) != 1 || !reflect.DeepEqual(got[0], c.want) {
			t.Errorf("%s:\n%+v, want\n%+v", name, got, c.want)
		}
	}
}

// TestHostPaths: few hosts have a path each; of many those are told that do not work.
func TestHostPaths(t *testing.T) {
	j := sites("asleep")
	j.Pairs = []links.Pair{ofHosts(0, 1, 0, 1, links.StateLinked, count(1, 1), count(1, 1)), ofHosts(0, 2, 0, 2, links.StateLost, count(1, 1), count(1, 1))}
	within, hosts := pathsOf(j)
	if len(within) != 2 || within[0].A != 0 || within[0].B != 0 || len(hosts) != 2 || hosts[0].State != pathLinked || hosts[1].State != pathLost {
		t.Errorf("%+v and %+v", within, hosts)
	}
	if m := modelOf([]status.Job{*j}, "1", time.Time{}).Jobs[0]; m.DrawBy != "host" {
		t.Errorf("drawn by %s", m.DrawBy)
	}
	j.Sites[1].Hosts = append(j.Sites[1].Hosts, make([]string, mostHosts)...)
	if _, hosts = pathsOf(j); len(hosts) != 1 || hosts[0].State != pathLost {
		t.Errorf("%+v", hosts)
	}
	if m := modelOf([]status.Job{*j}, "1", time.Time{}).Jobs[0]; m.DrawBy != "site" {
		t.Errorf("drawn by %s", m.DrawBy)
	}
}

// TestServerStates: which sites have the job's server, and which do not.
func TestServerStates(t *testing.T) {
	at := time.Date(2026, 11, 27, 15, 0, 0, 0, time.UTC)
	j := sites("asleep")
	j.Sites = append(j.Sites, links.SiteState{Site: links.Site{Name: "gamma", Client: 2}})
	j.Sites[0].Server = &links.JobServer{Address: "10.0.0.1:7800", Embedded: true}
	j.Sites[1].Server = &links.JobServer{Address: "10.0.0.1:7800", Ours: true, DisconnectedSince: at}
	want := []server{{Address: "10.0.0.1:7800", Where: "in the node of site alpha", Sites: []serverLink{{Site: 0, State: pathLinked}, {Site: 1, State: pathLost, Since: at}}}}
	if got := serversOf(j); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	j.Sites[0].Server = nil
	j.Sites[1].Server = &links.JobServer{Address: "10.0.0.9:1", Lost: at, DisconnectedSince: at, Why: "it has ended"}
	got := serversOf(j)
	if len(got) != 1 || got[0].Where != "" || !slices.Equal(got[0].Sites, []serverLink{{Site: 1, State: pathEnded, Since: at, Why: "it has ended"}}) {
		t.Errorf("%+v", got)
	}
}
