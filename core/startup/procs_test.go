package startup

import (
	"bytes"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/openimpi/impi/core/wire"
)

// TestProcs: the list gives back what was added, by rank and by identity, whatever PIDs, hosts and
// cards procs have, and finds nobody else.
func TestProcs(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var all []ProcInfo
		seen := map[wire.Proc]bool{}
		pid, host := int64(0), wire.HostRank(0)
		for range rapid.IntRange(0, 60).Draw(r, "procs") {
			switch rapid.IntRange(0, 9).Draw(r, "pid") {
			case 0:
				pid = rapid.Int64().Draw(r, "any")
			case 1:
				pid += rapid.Int64Range(-3, 1<<34).Draw(r, "more")
			default:
				pid += rapid.Int64Range(1, 4).Draw(r, "step")
			}
			host += wire.HostRank(rapid.IntRange(0, 9).Draw(r, "host") / 8)
			x := ProcInfo{
				ID: wire.Proc{Host: wire.HostID{15: byte(rapid.IntRange(0, 2).Draw(r, "machine"))}, PID: pid}, Host: host, Client: wire.ClientRank(host / 2),
				Card: [][]byte{nil, {}, []byte("a"), []byte("b")}[rapid.IntRange(0, 6).Draw(r, "card")%4],
			}
			if !seen[x.ID] {
				all, seen[x.ID] = append(all, x), true
			}
		}
		p := ListProcs(all...)
		if len(all) > 0 && rapid.Bool().Draw(r, "table") {
			var err error
			if p, err = OpenProcs(p.Table()); err != nil {
				r.Fatal(err)
			}
		}
		p.Index()
		if p.Len() != len(all) {
			r.Fatalf("%d procs, not %d", p.Len(), len(all))
		}
		next := 0
		for rank, got := range p.All() {
			x := all[rank]
			at, host, ok := p.Find(x.ID)
			if int(rank) != next || !same(got, x) || !same(p.At(rank), x) || at != rank || host != x.Host || !ok {
				r.Fatalf("rank %d is %+v, at %+v, found at %d, %d, %v, not %+v", rank, got, p.At(rank), at, host, ok, x)
			}
			for _, other := range []wire.Proc{{Host: x.ID.Host, PID: x.ID.PID + 1}, {Host: x.ID.Host, PID: x.ID.PID - 1}, {Host: wire.HostID{9}, PID: x.ID.PID}} {
				if _, _, ok := p.Find(other); ok != seen[other] {
					r.Fatalf("%v: found %v", other, ok)
				}
			}
			next++
		}
		if next != len(all) {
			r.Fatalf("%d procs were given", next)
		}
		next = 0
		for x := range p.Runs() {
			if int(x.First) != next || x.N < 1 || wire.HostID(x.Address) != x.ID.Host || !same(x.ProcInfo, all[next]) || !same(p.Run(wire.WorldRank(next+x.N-1)).ProcInfo, all[next]) {
				r.Fatalf("a run of %d is %+v, not %+v", x.N, x, all[next])
			}
			next += x.N
		}
		if next != len(all) {
			r.Fatalf("the runs have %d procs", next)
		}
	})
}

func same(a, b ProcInfo) bool {
	return a.ID == b.ID && a.Host == b.Host && a.Client == b.Client && (a.Card == nil) == (b.Card == nil) && bytes.Equal(a.Card, b.Card)
}

// TestProcsAreRuns: procs of one host whose PIDs ascend take one run, with no more than 2 bytes for
// each. One that is far from where equal spaces would have it begins another run.
func TestProcsAreRuns(t *testing.T) {
	const hosts, each = 7, 100
	var even, uneven Procs
	for h := range hosts {
		for i := range each {
			x := ProcInfo{Host: wire.HostRank(h), ID: wire.Proc{Host: wire.HostID{15: byte(h)}, PID: int64(i+1)<<32 | 4000}, Card: []byte{byte(h)}}
			even.Add(x)
			x.ID.PID += int64(3*i + i%5)
			uneven.Add(x)
		}
	}
	if len(even.runs) != hosts || len(even.offsets) != 0 || len(even.ends) != hosts {
		t.Errorf("evenly spaced: %d runs, %d offsets, %d cards", len(even.runs), len(even.offsets), len(even.ends))
	}
	far := ListProcs(ProcInfo{ID: wire.Proc{PID: 1}}, ProcInfo{ID: wire.Proc{PID: 2}}, ProcInfo{ID: wire.Proc{PID: 3 + math.MaxInt16}}, ProcInfo{ID: wire.Proc{PID: 5 + 2*math.MaxInt16}})
	if len(far.runs) != 2 || far.At(2).ID.PID != 3+math.MaxInt16 || far.At(3).ID.PID != 5+2*math.MaxInt16 {
		t.Errorf("far apart: %+v", far)
	}
	if len(uneven.runs) != hosts || len(uneven.offsets) != hosts*each {
		t.Errorf("unevenly spaced: %d runs, %d offsets", len(uneven.runs), len(uneven.offsets))
	}
}

// TestProcsSet changes one proc and no other.
func TestProcsSet(t *testing.T) {
	p := ListProcs(ProcInfo{ID: wire.Proc{PID: 1}}, ProcInfo{ID: wire.Proc{PID: 2}}, ProcInfo{ID: wire.Proc{PID: 3}})
	p.Set(1, ProcInfo{ID: wire.Proc{PID: 9}, Host: 1})
	if p.Len() != 3 || p.At(0).ID.PID != 1 || p.At(1).ID.PID != 9 || p.At(1).Host != 1 || p.At(2).ID.PID != 3 {
		t.Errorf("%+v %+v %+v", p.At(0), p.At(1), p.At(2))
	}
}
