package comm

import (
	"math/rand/v2"
	"testing"

	"github.com/openimpi/impi/core/wire"
)

// TestClientsOfWorlds: procs come and go behind those that are there, and leave
// the others' clients as they are.
func TestClientsOfWorlds(t *testing.T) {
	own := NewClients([]wire.ClientRank{0, 0, 1})
	a := own.With(3, []int{2, 1}, []wire.ClientRank{2, 3})
	b := a.With(6, []int{4}, []wire.ClientRank{4})
	c := b.Without(3, 6)
	for what, x := range map[string]struct {
		table *Clients
		want  map[Proc]wire.ClientRank
		procs int
	}{
		"own":     {own, map[Proc]wire.ClientRank{0: 0, 1: 0, 2: 1}, 3},
		"one":     {a, map[Proc]wire.ClientRank{2: 1, 3: 2, 4: 2, 5: 3}, 6},
		"two":     {b, map[Proc]wire.ClientRank{2: 1, 3: 2, 5: 3, 6: 4, 9: 4}, 10},
		"one now": {c, map[Proc]wire.ClientRank{0: 0, 2: 1, 6: 4, 9: 4}, 10},
	} {
		if n := x.table.Procs(); n != x.procs {
			t.Errorf("%s: %d procs, want %d", what, n, x.procs)
		}
		for p, want := range x.want {
			if got := x.table.Of(p); got != want {
				t.Errorf("%s: proc %d is of client %d, want %d", what, p, got, want)
			}
		}
	}
	g := NewGroup(8, 2).Union(NewGroup(1, 2)) // of a world behind a gap, and two clients of the job's
	m := NewMasters(g, c)
	if m.Count() != 3 || m.Client(0) != 4 || m.Client(1) != 0 || m.Client(2) != 1 || m.Rank(1) != 2 || m.Locals(0).Size() != 2 {
		t.Errorf("%d masters, the clients %v, want 4, 0, 1", m.Count(), m.clients)
	}
}

// TestClientsInTurns: the table says the same as a list of the clients of all procs, and has one
// entry for clients in a row that have as many procs each.
func TestClientsInTurns(t *testing.T) {
	chance := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		var list []wire.ClientRank
		client := wire.ClientRank(chance.IntN(3) - 1)
		for range chance.IntN(8) { // groups of clients of one size
			each := 1 + chance.IntN(3)
			for range 1 + chance.IntN(4) {
				for range each {
					list = append(list, client)
				}
				client += wire.ClientRank(1 + chance.IntN(8)/7)
			}
			client -= wire.ClientRank(chance.IntN(8) / 6)
		}
		c := NewClients(list)
		for i, want := range list {
			first, end := i, i+1
			for first > 0 && list[first-1] == want {
				first--
			}
			for end < len(list) && list[end] == want {
				end++
			}
			if got, a, b := c.span(Proc(i)); c.Of(Proc(i)) != want || got != want || int(a) != first || int(b) != end {
				t.Fatalf("%v: proc %d is of client %d, procs %d to %d; want %d, %d to %d", list, i, got, a, b, want, first, end)
			}
		}
	}
	var hosts []wire.ClientRank
	for i := range 40_000 {
		hosts = append(hosts, wire.ClientRank(max(2, i/10))) // of another site first, then of 10 procs each
	}
	if c := NewClients(hosts); len(c.ranges) != 2 || c.Procs() != 40_000 {
		t.Errorf("%d entries for %d procs", len(c.ranges), c.Procs())
	}
}

// TestGroupMap: members are renumbered one by one and keep their order.
func TestGroupMap(t *testing.T) {
	g := NewGroup(0, 3).Union(NewGroup(7, 2)).Map(func(p Proc) Proc {
		if p < 5 {
			return 100 + p
		}
		return p - 7
	})
	want := []Proc{100, 101, 102, 0, 1}
	for i, p := range g.Procs() {
		if p != want[i] {
			t.Fatalf("members %v, want %v", g.Procs(), want)
		}
	}
	if len(g.runs) != 2 {
		t.Errorf("%d runs, want 2", len(g.runs))
	}
}
