package status

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/links"
)

// view is what a proc's node says of its link to a peer.
func view(local, peer int, plane string, sent, received uint64) links.View {
	return links.View{Local: local, Peer: peer, State: links.StateLinked, Transport: "quic", Plane: plane,
		Traffic: &links.Traffic{Bytes: links.Bytes{Sent: &sent, Received: &received}, Messages: 1}}
}

// merged is a job of which a node has said this.
func merged(views []links.View, channels []links.Channel, procs ...links.Proc) *links.Job {
	about := links.NodeInfo{Job: "heat", ID: "a1b2", Site: "alpha"}
	site := links.Site{Name: "alpha", Own: true, Procs: len(procs), Hosts: []string{"10.0.0.1"}}
	return &links.Merge([]links.FoundNode{{About: about, Node: &links.Node{NodeInfo: about, State: links.NodeRunning, Sites: []links.Site{site}, Procs: procs, Views: views, Channels: channels}}})[0]
}

// TestUnderWay: all procs wait, and what decides is whether each end has what the other one has
// sent.
func TestUnderWay(t *testing.T) {
	long := 3 * time.Second
	linked := func(views ...links.View) []links.View { return views }
	silent := view(1, 0, "ring", 0, 0)
	silent.Traffic = nil
	ended := view(1, 0, "ring", 0, 0)
	ended.State = links.StateEnded
	opening := view(0, 1, "", 0, 0)
	opening.State = links.StateOpening
	idle := opening
	idle.Traffic = &links.Traffic{}
	lost := view(0, 1, "ring", 0, 0)
	lost.State = links.StateLost
	channel := func(from, to int, state links.State, sent, received uint64) links.Channel {
		return links.Channel{From: from, To: to, State: state, Transport: "tcp", Bytes: links.Bytes{Sent: &sent, Received: &received}}
	}
	for name, c := range map[string]struct {
		views    []links.View
		want     []UnderWay // none: it is a deadlock
		channels []links.Channel
	}{
		"all has arrived":       {linked(view(0, 1, "ring", 1234, 50), view(1, 0, "ring", 50, 1234)), nil, nil},
		"not all has arrived":   {linked(view(0, 1, "ring", 1234, 50), view(1, 0, "ring", 50, 34)), []UnderWay{{From: 0, To: 1, Bytes: 1200, Transport: "quic"}}, nil},
		"both ways":             {linked(view(0, 1, "ring", 9, 0), view(1, 0, "ring", 7, 0)), []UnderWay{{From: 0, To: 1, Bytes: 9, Transport: "quic"}, {From: 1, To: 0, Bytes: 7, Transport: "quic"}}, nil},
		"asked one moment late": {linked(view(0, 1, "ring", 9, 0), view(1, 0, "ring", 0, 12)), nil, nil},
		"other planes":          {linked(view(0, 1, "ring", 1234, 50), view(1, 0, "stream", 50, 34)), nil, nil},
		"one end known":         {linked(view(0, 1, "ring", 1234, 50)), nil, nil},
		"one end silent":        {linked(view(0, 1, "ring", 1234, 50), silent), nil, nil},
		"one end ended":         {linked(view(0, 1, "ring", 1234, 50), ended), []UnderWay{{From: 1, To: 0, Transport: "quic", Ended: true}}, nil},
		"link being made":       {linked(opening), []UnderWay{{From: 0, To: 1, Bytes: 0, Transport: "quic"}}, nil},
		"being made again":      {linked(lost, view(1, 0, "ring", 0, 0)), []UnderWay{{From: 0, To: 1, Transport: "quic", Lost: true}}, nil},
		"on a channel": {nil, []UnderWay{{From: 0, To: 1, Hosts: true, Bytes: 50, Transport: "tcp"}},
			[]links.Channel{channel(0, 1, links.StateLinked, 150, 7), channel(1, 0, links.StateLinked, 7, 100)}},
		"all has arrived there": {nil, nil, []links.Channel{channel(0, 1, links.StateLinked, 150, 7), channel(1, 0, links.StateLinked, 7, 150)}},
		"a channel that is lost": {nil, []UnderWay{{From: 1, To: 0, Hosts: true, Transport: "tcp", Lost: true}},
			[]links.Channel{channel(0, 1, links.StateLinked, 150, 7), channel(1, 0, links.StateLost, 7, 150)}},
		"made for nothing": {linked(idle), nil, nil},
	} {
		d, got := verdict(merged(c.views, c.channels, waits(0, "mpi.Recv", long, from(1)), waits(1, "mpi.Recv", long, from(0))))
		if !slices.Equal(got, c.want) || (d == nil) != (len(c.want) > 0) {
			t.Errorf("%s: deadlock %+v, under way %+v, want %+v", name, d, got, c.want)
		}
	}
	j := merged(linked(view(0, 1, "ring", 1234, 50), view(1, 0, "ring", 50, 34)), nil, waits(0, "mpi.Recv", long, from(1)), links.Proc{Rank: 1, State: links.ProcRunning})
	if d, got := verdict(j); d != nil || got != nil {
		t.Errorf("%+v and %+v, though a proc computes", d, got)
	}
	var b strings.Builder
	write(&b, &Report{Jobs: []Job{{Job: *j, UnderWay: []UnderWay{{From: 4, To: 5, Bytes: 1234, Transport: "quic"}, {From: 5, To: 4}, {From: 5, To: 3, Ended: true}, {From: 1, To: 0, Hosts: true, Transport: "tcp", Lost: true}}}}})
	for _, want := range []string{
		"rank 4 has sent 1.23 kB to rank 5 that have not arrived (quic): the link or its plugin stalls\n",
		"rank 5 has sent messages to rank 4, and their link is still being made\n",
		"the link of host 1 to host 0 is lost (tcp) and is being made again\n",
		"the link of rank 5 to rank 3 has ended, and rank 3 does not know it: its plugin or the network stalls\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, &b)
		}
	}
}

// TestTooManyPairs: of a job with more pairs than are told of, a deadlock is told with that, and
// what is under way is not known of them.
func TestTooManyPairs(t *testing.T) {
	long := 3 * time.Second
	j := merged(nil, nil, waits(0, "mpi.Recv", long, from(1)), waits(1, "mpi.Recv", long, from(0)))
	j.Left = 7
	d, _ := verdict(j)
	if d == nil || d.UnreportedPairs != 7 {
		t.Fatalf("%+v", d)
	}
	var b strings.Builder
	write(&b, &Report{Jobs: []Job{{Job: *j, Deadlock: d}}})
	for _, want := range []string{"under way: unknown of 7\n", "but of 7 pairs of procs nothing is told, between which messages may be under way\n    rank 0 --> rank 1 --> rank 0\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, &b)
		}
	}
}

// TestTooManyPairsByHost: what is under way between pairs that are not told of one by one follows
// from the sums of their hosts.
func TestTooManyPairsByHost(t *testing.T) {
	long := 3 * time.Second
	linked := func(pairs, counted int, sent, received uint64) links.LinkCount {
		return links.LinkCount{State: links.StateLinked, Transport: "tcp", Pairs: pairs, Counted: counted, Sent: sent, Received: received}
	}
	for name, c := range map[string]struct {
		a, b   []links.LinkCount
		want   []UnderWay
		untold int
		says   string
	}{
		"all has arrived":     {[]links.LinkCount{linked(9, 9, 500, 70)}, []links.LinkCount{linked(9, 9, 70, 500)}, nil, 0, "links: 9 tcp (impi-node links shows them)\n  under way: nothing\n"},
		"not all has arrived": {[]links.LinkCount{linked(9, 9, 500, 70)}, []links.LinkCount{linked(9, 9, 70, 400)}, []UnderWay{{From: 0, To: 1, Procs: true, Bytes: 100}}, 0, "under way: 100 B on links and channels, counted by hosts\n"},
		"one end counts less": {[]links.LinkCount{linked(9, 9, 500, 70)}, []links.LinkCount{linked(9, 8, 70, 400)}, nil, 9, "under way: unknown of 9\n"},
		"a link is being made": {[]links.LinkCount{linked(9, 9, 5, 5), {State: links.StateOpening, Pairs: 2, Waits: 1}}, []links.LinkCount{linked(9, 9, 5, 5)},
			[]UnderWay{{From: 0, To: 1, Procs: true}}, 0, "links: 2 opening, 9 tcp"},
		"a link is lost": {[]links.LinkCount{linked(9, 9, 5, 5)}, []links.LinkCount{linked(8, 8, 5, 5), {State: links.StateLost, Transport: "tcp", Pairs: 1, Counted: 1}},
			[]UnderWay{{From: 0, To: 1, Procs: true, Transport: "tcp", Lost: true}}, 0, "links: 1 lost, 8 tcp"},
	} {
		j := merged([]links.View{view(0, 1, "fd", 1, 0), view(1, 0, "fd", 0, 1)}, nil, waits(0, "mpi.Recv", long, from(1)), waits(1, "mpi.Recv", long, from(0)))
		j.ByHost = []links.HostCounts{{From: 0, To: 1, Links: c.a}, {From: 1, To: 0, Links: c.b}}
		d, got := verdict(j)
		if !slices.Equal(got, c.want) || (d == nil) != (len(c.want) > 0) || d != nil && d.UnreportedPairs != c.untold {
			t.Errorf("%s: deadlock %+v, under way %+v, want %+v", name, d, got, c.want)
		}
		var b strings.Builder
		write(&b, &Report{Jobs: []Job{{Job: *j, Deadlock: d, UnderWay: got}}})
		if !strings.Contains(b.String(), c.says) || len(c.want) > 0 && !strings.Contains(b.String(), "procs of host 0 ") {
			t.Errorf("%s: no %q in\n%s", name, c.says, &b)
		}
	}
}

// TestStarting: where the procs are, and for whom the site waits.
func TestStarting(t *testing.T) {
	p := links.SiteState{Site: links.Site{Name: "alpha", Own: true}, Here: true, PID: 42, State: links.NodeStarting, Waits: "site beta", Ranks: []links.Proc{
		{Rank: -1, PID: 7, Address: "10.0.0.1", State: links.ProcInit}, {Rank: -1, PID: 8, Address: "10.0.0.2", State: links.ProcInit},
	}}
	var b strings.Builder
	write(&b, &Report{Jobs: []Job{{Job: links.Job{Name: "heat", Sites: []links.SiteState{p}}}}})
	const want = `job heat

  site alpha  node 42 starting  waits for site beta
    no rank yet  10.0.0.1  pid 7  in MPI_Init
    no rank yet  10.0.0.2  pid 8  in MPI_Init
`
	if b.String() != want {
		t.Errorf("%s", &b)
	}
}
