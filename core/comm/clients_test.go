package comm

import (
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
