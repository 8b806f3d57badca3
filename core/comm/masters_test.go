package comm

import (
	"slices"
	"testing"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/allocs"
)

// blocks is the table of a world of 32 clients with as many procs each.
func blocks(each int) *Clients {
	clients := make([]wire.ClientRank, wire.MaxClients*each)
	for p := range clients {
		clients[p] = wire.ClientRank(p / each)
	}
	return NewClients(clients)
}

// regular returns groups of a world as programs commonly make them.
func regular(t testing.TB, each int) map[string]*Group {
	t.Helper()
	n := wire.MaxClients * each
	world := NewGroup(0, n)
	ranged := func(r ...Range) *Group {
		g, err := world.RangeIncl(r)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	return map[string]*Group{
		"world":             world,
		"every third":       ranged(Range{0, n - 1, 3}),
		"backwards":         ranged(Range{n - 1, 0, -1}),
		"upper half first":  ranged(Range{n / 2, n - 1, 1}, Range{0, n/2 - 1, 1}),
		"even ones of half": ranged(Range{0, n/2 - 1, 2}),
	}
}

// The masters of a regular group, and its communicator, take a few words for each client,
// however many procs the clients have.
func TestMastersMemoryDoesNotGrowWithTheGroup(t *testing.T) {
	cost := func(each int) map[string]int {
		table, bytes := blocks(each), make(map[string]int)
		for name, g := range regular(t, each) {
			self, _ := g.At(1)
			bytes[name] = int(allocs.BytesExact(func() {
				c, err := New(Spec{Group: g, Self: self, Clients: table})
				if err != nil {
					t.Fatal(err)
				}
				c.Masters()
			}))
		}
		return bytes
	}
	cost(3) // the first measurement makes the runtime's own memory
	small, large := cost(6), cost(6*521)
	for name, n := range large {
		t.Logf("%s: %d bytes for 192 ranks, %d for 100,032", name, small[name], n)
		if n > small[name]+1024 || n > 16<<10 {
			t.Errorf("%s: %d bytes for 192 ranks, %d for 100,032", name, small[name], n)
		}
	}
}

// The masters of large groups are numbered like those of small ones.
func TestMastersOfLargeGroups(t *testing.T) {
	const each = 3125
	table := blocks(each)
	for name, g := range regular(t, each) {
		m := NewMasters(g, table)
		var order []wire.ClientRank
		place := make([]int, wire.MaxClients)
		for p, r := range g.All() {
			c := wire.ClientRank(int(p) / each)
			if !slices.Contains(order, c) {
				order = append(order, c)
			}
			if n := m.Number(r); m.Client(n) != c || m.LocalIndex(r) != place[c] || n != slices.Index(order, c) {
				t.Fatalf("%s: rank %d is at %d of master %d, client %d; want %d of client %d",
					name, r, m.LocalIndex(r), n, m.Client(n), place[c], c)
			}
			place[c]++
		}
		if m.Count() != len(order) {
			t.Errorf("%s: %d masters, want %d", name, m.Count(), len(order))
		}
	}
}

// Masters that the caller has computed are used.
func TestGivenMasters(t *testing.T) {
	table, g := blocks(3), NewGroup(0, 96)
	m := NewMasters(g, table)
	c, err := New(Spec{Group: g, Clients: table, Masters: m})
	if err != nil || c.Masters() != m {
		t.Errorf("others: %v", err)
	}
}

func BenchmarkMasters(b *testing.B) {
	table := blocks(3125)
	for name, g := range regular(b, 3125) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				NewMasters(g, table)
			}
		})
	}
}
