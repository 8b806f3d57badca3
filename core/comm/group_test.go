package comm

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func of(t testing.TB, procs ...Proc) *Group {
	t.Helper()
	g, err := GroupOf(procs)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func members(t *testing.T, g *Group, want ...Proc) {
	t.Helper()
	if got := g.Procs(); !slices.Equal(got, want) {
		t.Errorf("members %v, want %v", got, want)
	}
	if g.Size() != len(want) {
		t.Errorf("size %d, want %d", g.Size(), len(want))
	}
	for r, p := range want {
		if got, ok := g.Rank(p); !ok || got != r {
			t.Errorf("rank of proc %d is %d, %v, want %d", p, got, ok, r)
		}
		if got, ok := g.At(r); !ok || got != p {
			t.Errorf("proc at %d is %d, %v, want %d", r, got, ok, p)
		}
	}
}

func wrong(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}

func TestGroupSizeAndRank(t *testing.T) {
	members(t, Empty)
	members(t, NewGroup(5, 0))
	members(t, NewGroup(5, 3), 5, 6, 7)
	members(t, of(t, 9, 3, 4, 5, 1), 9, 3, 4, 5, 1)
	members(t, of(t, 8, 6, 4, 2, 0), 8, 6, 4, 2, 0)
	if r, ok := Empty.Rank(0); ok || r != Undefined {
		t.Errorf("rank in the empty group is %d, %v", r, ok)
	}
	for _, p := range []Proc{-1, 1, 3, 10, 1 << 30} {
		if r, ok := of(t, 8, 6, 4, 2, 0).Rank(p); ok || r != Undefined {
			t.Errorf("proc %d has rank %d, %v", p, r, ok)
		}
	}
	for _, r := range []int{-1, 5, math.MaxInt, Undefined} {
		if p, ok := of(t, 8, 6, 4, 2, 0).At(r); ok {
			t.Errorf("rank %d is proc %d", r, p)
		}
	}
	_, err := GroupOf([]Proc{1, 2, 1})
	wrong(t, err, ErrRank)
	_, err = GroupOf([]Proc{1, -2})
	wrong(t, err, ErrRank)
}

// The world and regular parts of it take no table.
func TestGroupOfRunsTakesNoTable(t *testing.T) {
	world := NewGroup(0, 1_000_000)
	odd, err := world.RangeIncl([]Range{{1, 999_999, 2}})
	if err != nil {
		t.Fatal(err)
	}
	if len(world.runs) != 1 || len(odd.runs) != 1 || odd.index != nil {
		t.Errorf("%d and %d runs", len(world.runs), len(odd.runs))
	}
	if r, ok := odd.Rank(777_777); !ok || r != 388_888 {
		t.Errorf("rank %d, %v", r, ok)
	}
	if n := testing.AllocsPerRun(100, func() { world.Rank(77); world.At(5); odd.At(70) }); n > 0 {
		t.Errorf("looking up allocates %v times", n)
	}
}

func TestGroupTranslateRanks(t *testing.T) {
	g, h := of(t, 10, 11, 12, 13), of(t, 13, 20, 10)
	got, err := g.Translate([]int{0, 3, 1, 0, ProcNull}, h)
	if want := []int{2, 0, Undefined, 2, ProcNull}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	for _, r := range []int{-1, 4} {
		_, err = g.Translate([]int{r}, h)
		wrong(t, err, ErrRank)
	}
	if got, err = Empty.Translate(nil, h); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
	if got, err = g.Translate([]int{2}, Empty); err != nil || got[0] != Undefined {
		t.Errorf("%v, %v", got, err)
	}
	_, err = g.Translate([]int{2}, nil)
	wrong(t, err, ErrGroup)
}

func TestGroupCompare(t *testing.T) {
	g := of(t, 1, 5, 3)
	for _, c := range []struct {
		a, b *Group
		want Comparison
	}{
		{g, g, Identical}, {g, of(t, 1, 5, 3), Identical}, {g, of(t, 1, 3, 5), Similar},
		{g, of(t, 1, 5), Unequal}, {g, of(t, 1, 5, 4), Unequal}, {Empty, NewGroup(3, 0), Identical}, {Empty, g, Unequal},
	} {
		if got := c.a.Compare(c.b); got != c.want {
			t.Errorf("%v with %v: %d, want %d", c.a.Procs(), c.b.Procs(), got, c.want)
		}
	}
}

func TestGroupUnion(t *testing.T) {
	members(t, of(t, 3, 1).Union(of(t, 1, 2, 3, 9)), 3, 1, 2, 9)
	members(t, of(t, 1, 2).Union(of(t, 3, 1)), 1, 2, 3)
	members(t, Empty.Union(of(t, 4)), 4)
	members(t, of(t, 4).Union(Empty), 4)
}

func TestGroupIntersection(t *testing.T) {
	members(t, of(t, 3, 1, 7).Intersection(of(t, 7, 2, 3)), 3, 7)
	members(t, of(t, 3).Intersection(of(t, 4)))
}

func TestGroupDifference(t *testing.T) {
	members(t, of(t, 3, 1, 7).Difference(of(t, 7, 2)), 3, 1)
	members(t, of(t, 3).Difference(of(t, 3)))
}

func TestGroupIncl(t *testing.T) {
	g := NewGroup(10, 5)
	for _, c := range []struct {
		ranks []int
		want  []Proc
	}{{[]int{4, 0, 2}, []Proc{14, 10, 12}}, {nil, nil}} {
		sub, err := g.Incl(c.ranks)
		if err != nil {
			t.Fatal(err)
		}
		members(t, sub, c.want...)
	}
	for _, ranks := range [][]int{{5}, {-1}, {0, 1, 0}, {0, 1, 2, 3, 4, 0}} {
		_, err := g.Incl(ranks)
		wrong(t, err, ErrRank)
	}
}

func TestGroupExcl(t *testing.T) {
	g := NewGroup(10, 5)
	sub, err := g.Excl([]int{3, 0})
	if err != nil {
		t.Fatal(err)
	}
	members(t, sub, 11, 12, 14)
	if sub, err = g.Excl(nil); err != nil || sub.Compare(g) != Identical {
		t.Errorf("nothing excluded: %v, %v", sub, err)
	}
	if sub, err = g.Excl([]int{4, 3, 2, 1, 0}); err != nil || sub != Empty {
		t.Errorf("all excluded: %v, %v", sub, err)
	}
	for _, ranks := range [][]int{{5}, {-1}, {1, 1}} {
		_, err := g.Excl(ranks)
		wrong(t, err, ErrRank)
	}
}

func TestGroupRanges(t *testing.T) {
	g := NewGroup(10, 10)
	for _, c := range []struct {
		ranges []Range
		want   []Proc
	}{
		{[]Range{{1, 7, 3}}, []Proc{11, 14, 17}},
		{[]Range{{1, 8, 3}}, []Proc{11, 14, 17}}, // the end need not be hit
		{[]Range{{7, 2, -2}}, []Proc{17, 15, 13}},
		{[]Range{{4, 4, 0}, {5, 5, -9}}, []Proc{14, 15}}, // one element whatever the stride
		{[]Range{{8, 9, 1}, {0, 1, 1}}, []Proc{18, 19, 10, 11}},
		{nil, nil},
	} {
		sub, err := g.RangeIncl(c.ranges)
		if err != nil {
			t.Fatal(err)
		}
		members(t, sub, c.want...)
		rest, err := g.RangeExcl(c.ranges)
		if err != nil {
			t.Fatal(err)
		}
		if rest.Compare(g.Difference(sub)) != Identical {
			t.Errorf("without %v: %v", c.ranges, rest.Procs())
		}
	}
	for _, c := range []struct {
		r    Range
		want error
	}{
		{Range{1, 5, 0}, ErrRange}, {Range{1, 5, -1}, ErrRange}, {Range{5, 1, 1}, ErrRange},
		{Range{0, 10, 1}, ErrRank}, {Range{-1, 3, 1}, ErrRank}, {Range{3, -2, -1}, ErrRank}, {Range{0, math.MaxInt, 1}, ErrRank},
		{Range{5, math.MinInt, math.MinInt}, ErrRank}, {Range{5, math.MinInt, -math.MaxInt}, ErrRank}, {Range{9, math.MaxInt, math.MaxInt - 9}, ErrRank},
	} {
		_, err := g.RangeIncl([]Range{c.r})
		wrong(t, err, c.want)
		_, err = g.RangeExcl([]Range{c.r})
		wrong(t, err, c.want)
	}
	_, err := g.RangeIncl([]Range{{0, 4, 2}, {4, 5, 1}}) // twice, across ranges
	wrong(t, err, ErrRank)
}

// The last of a range may not be reached although it is outside the group.
func TestGroupRangeEndBeyond(t *testing.T) {
	sub, err := NewGroup(0, 10).RangeIncl([]Range{{0, 10, 3}})
	if err != nil {
		t.Fatal(err)
	}
	members(t, sub, 0, 3, 6, 9)
}

// TestGroupAlgebra compares groups of many shapes with plain lists.
func TestGroupAlgebra(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOfNDistinct(rapid.Int32Range(0, 60), 0, 40, rapid.ID).Draw(t, "a")
		b := rapid.SliceOfNDistinct(rapid.Int32Range(0, 60), 0, 40, rapid.ID).Draw(t, "b")
		if rapid.Bool().Draw(t, "sorted") {
			slices.Sort(a)
		}
		g, h := fromInts(a), fromInts(b)
		compare(t, g, a)
		compare(t, g.Intersection(h), slices.DeleteFunc(slices.Clone(a), func(x int32) bool { return !slices.Contains(b, x) }))
		diff := slices.DeleteFunc(slices.Clone(b), func(x int32) bool { return slices.Contains(a, x) })
		compare(t, h.Difference(g), diff)
		compare(t, g.Union(h), slices.Concat(a, diff))
	})
}

func fromInts(s []int32) *Group {
	procs := make([]Proc, len(s))
	for i, v := range s {
		procs[i] = Proc(v)
	}
	g, err := GroupOf(procs)
	if err != nil {
		panic(err)
	}
	return g
}

func compare(t *rapid.T, g *Group, want []int32) {
	if g.Size() != len(want) {
		t.Fatalf("%v, want %v", g.Procs(), want)
	}
	for r, v := range want {
		if p, ok := g.At(r); !ok || p != Proc(v) {
			t.Fatalf("%v, want %v", g.Procs(), want)
		}
	}
	for p := range Proc(61) {
		r, ok := g.Rank(p)
		if at := slices.Index(want, int32(p)); ok != (at >= 0) || ok && r != at {
			t.Fatalf("proc %d has rank %d, %v in %v", p, r, ok, want)
		}
	}
}

func BenchmarkIrregularRank(b *testing.B) {
	procs := rand.New(rand.NewPCG(1, 1)).Perm(10000)
	list := make([]Proc, len(procs))
	for i, p := range procs {
		list[i] = Proc(p)
	}
	g := of(b, list...)
	for b.Loop() {
		g.Rank(777)
	}
}
