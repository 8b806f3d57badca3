package comm

import (
	"math/rand/v2"
	"testing"

	"github.com/openimpi/impi/internal/allocs"
)

const million = 1_000_000

// millions are groups of about a million processes, and the number of runs that each may
// have.
func millions(t testing.TB) map[string]struct {
	g    *Group
	runs int
} {
	t.Helper()
	world := NewGroup(0, million)
	made := func(g *Group, err error) *Group {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	few := []int{17, 999_999, 0, 500_000, 500_001, 3, 123_456, 77, 250_000, 900_000, 42, 4711}
	return map[string]struct {
		g    *Group
		runs int
	}{
		"the world":        {world, 1},
		"odd ranks":        {made(world.RangeIncl([]Range{{1, million - 1, 2}})), 1},
		"backwards":        {made(world.RangeIncl([]Range{{million - 1, 0, -1}})), 1},
		"halves swapped":   {made(world.RangeIncl([]Range{{million / 2, million - 1, 1}, {0, million/2 - 1, 1}})), 2},
		"all but a few":    {made(world.Excl(few)), len(few)},
		"all but a range":  {made(world.RangeExcl([]Range{{1000, 2000, 1}})), 2},
		"odd ones of half": {made(made(world.RangeIncl([]Range{{0, million - 1, 2}})).RangeIncl([]Range{{0, 99, 1}})), 1},
		"all but the odds": {made(world.RangeExcl([]Range{{1, million - 1, 2}})), 1},
		"beyond the world": {NewGroup(million/2, million), 1},
	}
}

// A group of a million ranks that is made by ranges, or by leaving few out, stays
// small, and so do the results of operations on such groups.
func TestGroupsOfAMillionStaySmall(t *testing.T) {
	groups := millions(t)
	for name, a := range groups {
		if len(a.g.runs) > a.runs {
			t.Errorf("%s: %d runs, want %d", name, len(a.g.runs), a.runs)
		}
		for other, b := range groups {
			for op, f := range map[string]func() *Group{
				"union":        func() *Group { return a.g.Union(b.g) },
				"intersection": func() *Group { return a.g.Intersection(b.g) },
				"difference":   func() *Group { return a.g.Difference(b.g) },
			} {
				var g *Group
				if n := allocs.BytesExact(func() { g = f() }); n > 32<<10 || len(g.runs) > 4*len(groups["all but a few"].g.runs) {
					t.Errorf("%s of %s and %s: %d runs, %d bytes to make it", op, name, other, len(g.runs), n)
				}
			}
			if n := allocs.BytesExact(func() { a.g.Compare(b.g) }); n > 8<<10 {
				t.Errorf("comparing %s with %s takes %d bytes", name, other, n)
			}
		}
	}
}

// Sizes are those of the sets: |a| + |b| = |a ∪ b| + |a ∩ b|, |a ∖ b| = |a| - |a ∩ b|.
func TestAlgebraOfMillions(t *testing.T) {
	groups := millions(t)
	for name, a := range groups {
		for other, b := range groups {
			union, both, rest := a.g.Union(b.g), a.g.Intersection(b.g), a.g.Difference(b.g)
			if a.g.Size()+b.g.Size() != union.Size()+both.Size() || rest.Size() != a.g.Size()-both.Size() {
				t.Errorf("%s and %s: sizes %d and %d, union %d, intersection %d, difference %d",
					name, other, a.g.Size(), b.g.Size(), union.Size(), both.Size(), rest.Size())
			}
			for _, r := range []int{0, 1, both.Size() / 3, both.Size() - 1} {
				p, ok := both.At(r)
				if _, in := a.g.Rank(p); ok && !in {
					t.Errorf("proc %d of the intersection is not in %s", p, name)
				}
				if _, in := b.g.Rank(p); ok && !in {
					t.Errorf("proc %d of the intersection is not in %s", p, other)
				}
			}
			if want := both.Size() == a.g.Size() && both.Size() == b.g.Size(); (a.g.Compare(b.g) != Unequal) != want {
				t.Errorf("%s compared with %s: %d", name, other, a.g.Compare(b.g))
			}
		}
	}
}

// Irregular groups take a bounded number of bytes for each member, and looking one up does
// not visit them all.
func TestIrregularGroupsTakeWordsPerMember(t *testing.T) {
	const n = 100_000
	list := make([]Proc, n)
	for i, p := range rand.New(rand.NewPCG(1, 2)).Perm(n) {
		list[i] = Proc(p)
	}
	g := of(t, list...)
	for r, p := range list {
		if got, ok := g.Rank(p); !ok || got != r {
			t.Fatalf("rank of proc %d is %d, %v, want %d", p, got, ok, r)
		}
	}
	bytes := len(g.runs)*16 + len(g.index.order)*4 + len(g.index.reach)*4
	if bytes > 32*n {
		t.Errorf("%d bytes for %d members", bytes, n)
	}
	back := NewGroup(0, n).Compare(g)
	if back != Similar || g.Intersection(NewGroup(0, n)).Compare(g) != Identical {
		t.Errorf("compared with the sorted one: %d", back)
	}
}

func BenchmarkSetsOfAMillion(b *testing.B) {
	groups := millions(b)
	few, odd := groups["all but a few"].g, groups["odd ranks"].g
	for name, f := range map[string]func(){
		"union":        func() { few.Union(odd) },
		"intersection": func() { few.Intersection(odd) },
		"difference":   func() { few.Difference(odd) },
		"compare":      func() { few.Compare(odd) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f()
			}
		})
	}
}

func BenchmarkSetsOfIrregularGroups(b *testing.B) {
	const n = 10_000
	perm := func(seed uint64) *Group {
		list := make([]Proc, n)
		for i, p := range rand.New(rand.NewPCG(seed, 2)).Perm(n) {
			list[i] = Proc(p)
		}
		return of(b, list...)
	}
	g, h := perm(1), perm(2)
	for b.Loop() {
		g.Union(h)
		g.Intersection(h)
		g.Compare(h)
	}
}
