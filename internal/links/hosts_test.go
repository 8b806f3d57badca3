package links

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"
)

// TestBetweenHosts: what is under way between two hosts is known if both count the same links, all
// of them.
func TestBetweenHosts(t *testing.T) {
	linked := func(transport string, pairs, counted int, sent, received uint64) LinkCount {
		return LinkCount{State: StateLinked, Transport: transport, Pairs: pairs, Counted: counted, Sent: sent, Received: received}
	}
	lost := LinkCount{State: StateLost, Transport: "tcp", Pairs: 1, Counted: 1, Sent: 10, Received: 1}
	for name, c := range map[string]struct {
		counts []HostCounts
		want   HostLinks // without Links
		pairs  int
	}{
		"both tell": {[]HostCounts{{From: 4, To: 2, Links: []LinkCount{linked("tcp", 3, 3, 100, 7), {State: StateUnused, Pairs: 4}}}, {From: 2, To: 4, Links: []LinkCount{linked("tcp", 3, 3, 9, 80)}}},
			HostLinks{A: 2, B: 4, AToB: 2, BToA: 20, Known: 3}, 3},
		"planes differ": {[]HostCounts{{From: 1, To: 2, Links: []LinkCount{{State: StateLinked, Transport: "tcp", Plane: "fd", Pairs: 1, Counted: 1, Sent: 5}, {State: StateLinked, Transport: "tcp", Plane: "ring", Pairs: 1, Counted: 1, Sent: 5}}}, {From: 2, To: 1, Links: []LinkCount{linked("tcp", 2, 2, 0, 8)}}},
			HostLinks{A: 1, B: 2, AToB: 2, Known: 2}, 2},
		"lost at one end": {[]HostCounts{{From: 1, To: 2, Links: []LinkCount{linked("tcp", 3, 3, 100, 7)}}, {From: 2, To: 1, Links: []LinkCount{linked("tcp", 2, 2, 0, 50), lost}}},
			HostLinks{A: 1, B: 2, AToB: 49, BToA: 3, Known: 3}, 3},
		"one tells":           {[]HostCounts{{From: 4, To: 2, Links: []LinkCount{linked("tcp", 3, 3, 100, 7), {State: StateOpening, Pairs: 1, Waits: 1}}}}, HostLinks{A: 2, B: 4, Unknown: 3, BWaits: 1}, 4},
		"one counts more":     {[]HostCounts{{From: 1, To: 2, Links: []LinkCount{linked("tcp", 3, 3, 9, 9)}}, {From: 2, To: 1, Links: []LinkCount{linked("tcp", 2, 2, 0, 0)}}}, HostLinks{A: 1, B: 2, Unknown: 3}, 3},
		"other transports":    {[]HostCounts{{From: 1, To: 2, Links: []LinkCount{linked("tcp", 1, 1, 9, 9)}}, {From: 2, To: 1, Links: []LinkCount{linked("quic", 2, 2, 0, 0)}}}, HostLinks{A: 1, B: 2, Unknown: 3}, 1},
		"bytes that differ":   {[]HostCounts{{From: 1, To: 2, Links: []LinkCount{linked("tcp", 3, 2, 9, 9)}}, {From: 2, To: 1, Links: []LinkCount{linked("tcp", 3, 3, 0, 0)}}}, HostLinks{A: 1, B: 2, Unknown: 3}, 3},
		"ended at one end":    {[]HostCounts{{From: 1, To: 2, Links: []LinkCount{{State: StateEnded, Transport: "tcp", Pairs: 1}}}, {From: 2, To: 1, Links: []LinkCount{linked("tcp", 1, 1, 0, 0)}}}, HostLinks{A: 1, B: 2, Unknown: 1}, 1},
		"within a host":       {[]HostCounts{{From: 3, To: 3, Links: []LinkCount{linked("shm", 12, 12, 500, 460)}}}, HostLinks{A: 3, B: 3, AToB: 40, Known: 6}, 6},
		"within, and not all": {[]HostCounts{{From: 3, To: 3, Links: []LinkCount{linked("shm", 12, 11, 500, 460)}}}, HostLinks{A: 3, B: 3, Unknown: 6}, 6},
		"being made there":    {[]HostCounts{{From: 1, To: 2}, {From: 2, To: 1, Links: []LinkCount{{State: StateOpening, Pairs: 3, Waits: 2}}}}, HostLinks{A: 1, B: 2, BWaits: 2}, 0},
		"what cannot be":      {[]HostCounts{{From: 1, To: 2, Links: []LinkCount{linked("tcp", -3, 3, 9, 9)}}}, HostLinks{A: 1, B: 2}, 0},
		"less than was asked": {[]HostCounts{{From: 1, To: 2, Links: []LinkCount{linked("tcp", 1, 1, 5, 0)}}, {From: 2, To: 1, Links: []LinkCount{linked("tcp", 1, 1, 0, 9)}}}, HostLinks{A: 1, B: 2, Known: 1}, 1},
	} {
		got := (&Job{ByHost: c.counts}).BetweenHosts()
		if len(got) != 1 {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		pairs := got[0].Pairs()
		if got[0].Links = nil; !reflect.DeepEqual(got[0], c.want) || pairs != c.pairs {
			t.Errorf("%s: %+v of %d, want %+v of %d", name, got[0], pairs, c.want, c.pairs)
		}
	}
}

// TestTrafficBetweenHosts: what a host does not tell is what the other one has received, and the
// latency is the shortest.
func TestTrafficBetweenHosts(t *testing.T) {
	j := Job{ByHost: []HostCounts{
		{From: 4, To: 2, Messages: 7, Data: 70, Sent: 77, Received: 9, RTT: 8 * time.Microsecond},
		{From: 2, To: 4, Messages: 1, Data: 10, Sent: 11, Received: 77, RTT: 6 * time.Microsecond},
		{From: 5, To: 2, Messages: 3, Data: 30, Sent: 33, Received: 44},
		{From: 2, To: 2, Messages: 2, Data: 20, Sent: 22, Received: 22},
	}}
	var got []string
	show := func(c Count) string {
		return count(c.Messages, "") + " " + count(c.Data, "") + " " + count(c.Bytes, "")
	}
	for _, h := range j.TrafficBetweenHosts() {
		got = append(got, fmt.Sprintf("%d-%d: %s, %s, %v", h.A, h.B, show(h.AToB), show(h.BToA), h.HalfTrip))
	}
	want := []string{"2-2: 2 20 22, ? ? ?, 0s", "2-4: 1 10 11, 7 70 77, 3µs", "2-5: ? ? 44, 3 30 33, 0s"}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// TestThroughAgents: of hosts whose procs have no link with an estimate the channel's counts, if
// their packets go by that.
func TestThroughAgents(t *testing.T) {
	agents, tcp := []LinkCount{{State: StateAgents, Pairs: 2}}, []LinkCount{{State: StateLinked, Transport: "tcp", Pairs: 2}}
	hosts := []HostCounts{{From: 0, To: 1, Links: agents}, {From: 0, To: 2, Links: tcp}, {From: 0, To: 3, Links: agents, RTT: 5}}
	EstimateRoundTrips(hosts, []Channel{{From: 0, To: 1, RTT: 100}, {From: 0, To: 2, RTT: 100}, {From: 0, To: 3, RTT: 100}})
	for i, want := range []time.Duration{100, 0, 5} {
		if hosts[i].RTT != want {
			t.Errorf("host %d: %v, want %v", i+1, hosts[i].RTT, want)
		}
	}
}
