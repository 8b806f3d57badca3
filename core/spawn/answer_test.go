package spawn

import (
	"net/netip"
	"slices"
	"strconv"
	"testing"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
)

func TestJudge(t *testing.T) {
	job := &startup.Job{Self: 1, Hosts: []startup.HostInfo{
		{Client: 0, NProcs: 2}, {Client: 0, FirstProc: 2, NProcs: 1}, {Client: 1, FirstProc: 3, NProcs: 1}, {Client: 2, FirstProc: 4},
	}}
	for _, x := range []struct {
		from    wire.HostRank
		allowed bool
		first   wire.WorldRank // that is asked about; -1: none
		want    dynamic.Verdict
	}{
		{0, true, 0, dynamic.Accepted},
		{1, true, 2, dynamic.Accepted},
		{1, false, 2, dynamic.NotAllowed},
		{2, true, -1, dynamic.UnknownRank}, // the site itself
		{3, true, -1, dynamic.UnknownRank}, // without procs
		{4, true, -1, dynamic.UnknownRank},
		{-1, true, -1, dynamic.UnknownRank},
	} {
		first := wire.WorldRank(-1)
		got := Judge(job, x.from, func(r wire.WorldRank) bool {
			first = r
			return x.allowed
		})
		if got != x.want || first != x.first {
			t.Errorf("host %d, allowed %t: %v, asked about rank %d", x.from, x.allowed, got, first)
		}
	}
}

func TestRequestAt(t *testing.T) {
	for _, x := range []struct {
		hosts, gone, left []int
		reason            string
	}{
		{[]int{2, 0}, nil, []int{2, 0}, ""},
		{[]int{2, 0, 1}, []int{0}, []int{2, 1}, ""},
		{[]int{1, 2}, []int{1, 2}, nil, "host h1 of site a has left, as its part of the job is over"},
		{[]int{}, nil, nil, "site a has no host of []"},
		{[]int{0, 3}, nil, nil, "site a has no host of [0 3]"},
		{[]int{-1}, nil, nil, "site a has no host of [-1]"},
	} {
		w := SlotRequest{Hosts: slices.Clone(x.hosts)}
		r := w.At("a", 3, func(h int) bool { return !slices.Contains(x.gone, h) }, func(h int) string { return "h" + strconv.Itoa(h) })
		reason := ""
		if r != nil {
			reason = r.Reason
		}
		if reason != x.reason || r == nil && !slices.Equal(w.Hosts, x.left) {
			t.Errorf("hosts %v of which %v are gone: %v, refused %q", x.hosts, x.gone, w.Hosts, reason)
		}
	}
}

func TestMayLeave(t *testing.T) {
	for _, x := range []struct {
		leaving []bool
		mine    bool
		want    bool
	}{
		{[]bool{false}, true, false}, {[]bool{false, true}, true, true}, {[]bool{false, false}, true, false},
		{nil, true, true}, {nil, false, true}, {[]bool{false}, false, true}, {[]bool{true}, false, true},
	} {
		if got := MayLeave(x.leaving, x.mine); got != x.want {
			t.Errorf("%v, mine %t: %t", x.leaving, x.mine, got)
		}
	}
}

func TestHostsFor(t *testing.T) {
	host := func(addresses ...string) (h Host) {
		for _, a := range addresses {
			h.Addresses = append(h.Addresses, netip.MustParseAddr(a))
		}
		h.Names = []string{"node"}
		return h
	}
	site := &Site{Name: "a", Hosts: []Host{host("10.0.0.1"), host("10.0.0.2", "192.168.0.2"), host("10.0.0.2")}}
	for _, x := range []struct {
		at     string
		spread bool
		want   []int
	}{
		{"", false, []int{0}},
		{"", true, []int{0, 1, 2}},
		{"10.0.0.1", true, []int{0}},
		{"10.0.0.2", false, []int{1, 2}},
		{"192.168.0.2", false, []int{1}},
		{"10.0.0.3", true, nil},
		{"node", true, nil}, // the site that asks gives the address
		{"", true, []int{0, 1, 2}},
	} {
		hosts, r := site.HostsFor(&Part{Host: x.at}, x.spread)
		if !slices.Equal(hosts, x.want) || (r == nil) != (x.want != nil) {
			t.Errorf("host %q, spread %t: hosts %v, refused %v", x.at, x.spread, hosts, r)
		}
	}
}
