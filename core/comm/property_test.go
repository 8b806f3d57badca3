package comm

import (
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/openimpi/impi/core/wire"
)

// drawList draws the members of a group: any, or regular runs, which groups keep
// without a table.
func drawList(t *rapid.T, name string) []int32 {
	if rapid.Bool().Draw(t, name+" at random") {
		return rapid.SliceOfNDistinct(rapid.Int32Range(0, 60), 0, 40, rapid.ID).Draw(t, name)
	}
	var list []int32
	for range rapid.IntRange(0, 12).Draw(t, name+" runs") {
		p, step := rapid.Int32Range(0, 60).Draw(t, "first"), rapid.Int32Range(-4, 4).Draw(t, "step")
		for range rapid.IntRange(1, 10).Draw(t, "length") {
			if p < 0 || p > 60 || slices.Contains(list, p) {
				break
			}
			list = append(list, p)
			p += step
		}
	}
	return list
}

// drawRanks draws ranks for a group of n, some of which may be invalid.
func drawRanks(t *rapid.T, n int) []int {
	how := rapid.IntRange(0, 3).Draw(t, "how")
	switch {
	case n > 0 && how < 2:
		return rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 0, n, rapid.ID).Draw(t, "ranks")
	case n > 0 && how == 2:
		return rapid.SliceOfN(rapid.IntRange(0, min(n-1, 3)), 0, 3).Draw(t, "maybe twice")
	}
	return rapid.SliceOfN(rapid.IntRange(-2, n+1), 0, 6).Draw(t, "any ranks")
}

// included does what Incl and Excl do on plain lists; ok is false for invalid ranks.
func included(list []int32, ranks []int) (in, out []int32, ok bool) {
	for i, r := range ranks {
		if r < 0 || r >= len(list) || slices.Contains(ranks[:i], r) {
			return nil, nil, false
		}
		in = append(in, list[r])
	}
	for r, p := range list {
		if !slices.Contains(ranks, r) {
			out = append(out, p)
		}
	}
	return in, out, true
}

// TestSubsetsAgainstLists: Incl and Excl take the same members as from a list, and refuse
// invalid ranks and ranks that come twice.
func TestSubsetsAgainstLists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawList(t, "group")
		g := fromInts(list)
		ranks := drawRanks(t, len(list))
		in, out, ok := included(list, ranks)
		same(t, g.Incl, ranks, in, ok, ErrRank)
		same(t, g.Excl, ranks, out, ok, ErrRank)
		compare(t, g, list) // it is unchanged
	})
}

// same compares what f makes of arg with a list.
func same[A any](t *rapid.T, f func(A) (*Group, error), arg A, want []int32, ok bool, fault error) {
	g, err := f(arg)
	switch {
	case ok && err == nil:
		compare(t, g, want)
	case ok || !errors.Is(err, fault):
		t.Fatalf("%v: error %v, want one: %v", arg, err, !ok)
	}
}

// listed is the ranks of a range as MPI defines them, one at a time; nil for a
// stride that does not lead to the end. Ranks beyond the group end the list.
func (r Range) listed(size int) (ranks []int) {
	if r.First == r.Last {
		return []int{r.First}
	}
	if r.Stride == 0 || (r.Stride > 0) != (r.Last > r.First) {
		return nil
	}
	for x := r.First; r.Stride > 0 && x <= r.Last || r.Stride < 0 && x >= r.Last; x += r.Stride {
		if ranks = append(ranks, x); x < 0 || x >= size {
			break
		}
		if r.Stride > 0 && x > math.MaxInt-r.Stride || r.Stride < 0 && x < math.MinInt-r.Stride {
			break // the next one is beyond all numbers
		}
	}
	return ranks
}

// TestRangesAgainstLists expands ranges by walking along them.
func TestRangesAgainstLists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawList(t, "group")
		n := len(list)
		far := []int{-1, n, n + 1, math.MinInt, math.MinInt + 1, math.MaxInt, math.MaxInt - 1, math.MaxInt32}
		end := rapid.OneOf(rapid.IntRange(0, max(0, n-1)), rapid.IntRange(0, max(0, n-1)), rapid.SampledFrom(far))
		stride := rapid.OneOf(rapid.IntRange(-5, 5), rapid.IntRange(-5, 5), rapid.SampledFrom(far))
		var ranges []Range
		var ranks []int
		fault := error(nil)
		for range rapid.IntRange(0, 3).Draw(t, "ranges") {
			r := Range{end.Draw(t, "first"), end.Draw(t, "last"), stride.Draw(t, "stride")}
			some := r.listed(n)
			if some == nil && fault == nil {
				fault = ErrRange
			} else if i := slices.IndexFunc(some, func(x int) bool { return x < 0 || x >= n }); i >= 0 && fault == nil {
				fault = ErrRank
			}
			ranges, ranks = append(ranges, r), append(ranks, some...)
		}
		in, out, ok := included(list, ranks)
		if fault == nil && !ok {
			fault = ErrRank
		}
		g := fromInts(list)
		same(t, g.RangeIncl, ranges, in, fault == nil, fault)
		same(t, g.RangeExcl, ranges, out, fault == nil, fault)
	})
}

// TestTranslateAndCompareAgainstLists looks each rank up in both lists.
func TestTranslateAndCompareAgainstLists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawList(t, "a"), drawList(t, "b")
		switch rapid.IntRange(0, 3).Draw(t, "relation") {
		case 0:
			b = slices.Clone(a)
		case 1:
			b = rapid.Permutation(a).Draw(t, "order")
		}
		g, h := fromInts(a), fromInts(b)
		ranks := drawRanks(t, len(a))
		if rapid.Bool().Draw(t, "null") {
			ranks = append(ranks, ProcNull)
		}
		var want []int
		wrong := false
		for _, r := range ranks {
			switch {
			case r == ProcNull:
				want = append(want, ProcNull)
			case r < 0 || r >= len(a):
				wrong = true
			case !slices.Contains(b, a[r]):
				want = append(want, Undefined)
			default:
				want = append(want, slices.Index(b, a[r]))
			}
		}
		got, err := g.Translate(ranks, h)
		if wrong != errors.Is(err, ErrRank) || err == nil && !slices.Equal(got, want) {
			t.Fatalf("ranks %v of %v in %v are %v, %v; want %v", ranks, a, b, got, err, want)
		}
		relation := Unequal
		sorted := func(s []int32) []int32 { return slices.Sorted(slices.Values(s)) }
		if slices.Equal(a, b) {
			relation = Identical
		} else if slices.Equal(sorted(a), sorted(b)) {
			relation = Similar
		}
		if g.Compare(h) != relation || h.Compare(g) != relation {
			t.Fatalf("%v and %v: %v and %v, want %v", a, b, g.Compare(h), h.Compare(g), relation)
		}
	})
}

// drawClients draws the clients of procs 0 to 60: in blocks, as those of a world
// are, or any.
func drawClients(t *rapid.T) []wire.ClientRank {
	blocks := rapid.Bool().Draw(t, "in blocks")
	table := make([]wire.ClientRank, 61)
	for i := range table {
		if i == 0 || !blocks || rapid.IntRange(0, 9).Draw(t, "next block") == 0 {
			table[i] = wire.ClientRank(rapid.IntRange(0, 6).Draw(t, "client"))
		} else {
			table[i] = table[i-1]
		}
	}
	return table
}

// TestClientsAgainstAList compares ranges of procs with a list of all of them.
func TestClientsAgainstAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawClients(t)
		c := NewClients(table)
		if c.Procs() != len(table) {
			t.Fatalf("%d procs, want %d", c.Procs(), len(table))
		}
		for p, want := range table {
			if got := c.Of(Proc(p)); got != want {
				t.Fatalf("proc %d is of client %d, want %d", p, got, want)
			}
			client, first, end := c.span(Proc(p))
			if client != want || int(first) > p || int(end) <= p || slices.ContainsFunc(table[first:end], func(x wire.ClientRank) bool { return x != want }) {
				t.Fatalf("proc %d of client %d is in the range %d to %d of client %d", p, want, first, end, client)
			}
		}
	})
}

// TestMastersAgainstLists numbers the clients of ranks by looking at all of them.
func TestMastersAgainstLists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawClients(t)
		list := drawList(t, "group")
		if len(list) == 0 {
			list = []int32{5}
		}
		clients := make([]wire.ClientRank, len(list))
		procs := make([]Proc, len(list))
		for r, p := range list {
			clients[r], procs[r] = table[p], Proc(p)
		}
		g, err := GroupOf(procs)
		if err != nil {
			t.Fatal(err)
		}
		m := NewMasters(g, NewClients(table))
		var order []wire.ClientRank // a client's number is that of its lowest rank among the masters
		members := map[wire.ClientRank][]Proc{}
		for r, c := range clients {
			if !slices.Contains(order, c) {
				order = append(order, c)
			}
			members[c] = append(members[c], Proc(r))
		}
		if m.Count() != len(order) {
			t.Fatalf("%d masters, want %d", m.Count(), len(order))
		}
		for n := range m.Count() {
			c := m.Client(n)
			if !slices.Equal(m.Locals(n).Procs(), members[c]) || m.Rank(n) != int(members[c][0]) {
				t.Fatalf("master %d of client %d: rank %d of %v, want %v", n, c, m.Rank(n), m.Locals(n).Procs(), members[c])
			}
		}
		for r, c := range clients {
			n := m.Number(r)
			if m.Client(n) != c || m.LocalIndex(r) != slices.Index(members[c], Proc(r)) {
				t.Fatalf("rank %d of client %d: master %d, place %d", r, c, n, m.LocalIndex(r))
			}
			for q, d := range clients {
				if m.Local(r, q) != (c == d) {
					t.Fatalf("ranks %d and %d: local %v", r, q, m.Local(r, q))
				}
			}
		}
	})
}

// TestCartAgainstCounting walks through a topology like an odometer.
func TestCartAgainstCounting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dims := rapid.SliceOfN(rapid.IntRange(1, 5), 0, 4).Draw(t, "dims")
		periodic := rapid.SliceOfN(rapid.Bool(), len(dims), len(dims)).Draw(t, "periodic")
		places := [][]int{{}}
		for _, d := range dims {
			var longer [][]int
			for _, p := range places {
				for x := range d {
					longer = append(longer, append(slices.Clone(p), x))
				}
			}
			places = longer
		}
		c, err := NewCart(dims, periodic, len(places)+rapid.IntRange(0, 2).Draw(t, "spare"))
		if err != nil || c.Size() != len(places) {
			t.Fatalf("%v: %v", dims, err)
		}
		rank := rapid.IntRange(0, len(places)-1).Draw(t, "rank")
		coords, err := c.Coords(rank)
		if err != nil || !slices.Equal(coords, places[rank]) {
			t.Fatalf("rank %d of %v is at %v, %v; want %v", rank, dims, coords, err, places[rank])
		}
		for i, d := range dims {
			disp := rapid.IntRange(-12, 12).Draw(t, "disp")
			source, dest, err := c.Shift(rank, i, disp)
			for got, by := range map[*int]int{&source: -disp, &dest: disp} {
				to := slices.Clone(coords)
				to[i] += by
				for periodic[i] && to[i] < 0 {
					to[i] += d
				}
				for periodic[i] && to[i] >= d {
					to[i] -= d
				}
				want := slices.IndexFunc(places, func(p []int) bool { return slices.Equal(p, to) })
				if want < 0 {
					want = ProcNull
				}
				if err != nil || *got != want {
					t.Fatalf("%v by %d along %d of %v: %d, %v; want %d", coords, by, i, dims, *got, err, want)
				}
				back, err := c.Rank(to)
				if (err == nil) != (want >= 0) || err == nil && back != want {
					t.Fatalf("rank at %v: %d, %v", to, back, err)
				}
			}
		}
	})
}
