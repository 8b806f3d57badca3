package agree

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSetsAgainstModel compares sets with maps.
func TestSetsAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const size = 200
		ranks := rapid.SliceOfDistinct(rapid.IntRange(0, size-1), rapid.ID[int])
		a, b := ranks.Draw(t, "a"), ranks.Draw(t, "b")
		in := func(list []int) func(int) bool { return func(r int) bool { return slices.Contains(list, r) } }
		has := func(name string, s Set, want func(int) bool) {
			var all []int
			for r := range size {
				if want(r) {
					all = append(all, r)
				}
				if s.Has(r) != want(r) {
					t.Fatalf("%s has %d: %v", name, r, s.Has(r))
				}
			}
			if got := slices.Collect(s.All()); !slices.Equal(got, all) || s.Len() != len(all) || !s.Equal(SetOf(all...)) {
				t.Fatalf("%s is %v of %d, want %v", name, s, s.Len(), all)
			}
		}
		x, y := SetOf(a...), SetOf(b...)
		has("a", x, in(a))
		has("union", x.union(y), func(r int) bool { return in(a)(r) || in(b)(r) })
		has("intersection", x.intersect(y), func(r int) bool { return in(a)(r) && in(b)(r) })
		has("difference", x.Without(y), func(r int) bool { return in(a)(r) && !in(b)(r) })
		if got, want := x.within(y), !slices.ContainsFunc(a, func(r int) bool { return !in(b)(r) }); got != want {
			t.Fatalf("%v within %v: %v", x, y, got)
		}
		first := 0
		for in(a)(first) {
			first++
		}
		if got := x.firstNot(); got != first {
			t.Fatalf("the first that is not in %v is %d", x, got)
		}
		if x.Has(-1) || x.Has(1<<40) {
			t.Fatal("ranks that are in no group are in it")
		}
	})
}
