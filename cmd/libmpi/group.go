//go:build cgo && !386 && !arm

package main

import "C"

import (
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/mpi"
)

//export abiGroupSize
func abiGroupSize(g, out uintptr) int32 {
	return onGroup("Group_size", g, func(g *mpi.Group) error { return putInt("size", out, g.Size()) })
}

//export abiGroupRank
func abiGroupRank(g, out uintptr) int32 {
	return onGroup("Group_rank", g, func(g *mpi.Group) error { return putInt("rank", out, g.Rank()) })
}

// onGroup is a call on a group.
func onGroup(fn string, h uintptr, f func(g *mpi.Group) error) int32 {
	return on(fn, 0, func() error {
		g, err := groupOf("group", h)
		if err != nil {
			return err
		}
		return f(g)
	})
}

// onGroups is a call on two.
func onGroups(fn string, a, b uintptr, f func(g, h *mpi.Group) error) int32 {
	return on(fn, 0, func() error {
		g, err := groupOf("group1", a)
		if err != nil {
			return err
		}
		h, err := groupOf("group2", b)
		if err != nil {
			return err
		}
		return f(g, h)
	})
}

//export abiGroupTranslateRanks
func abiGroupTranslateRanks(a uintptr, n int32, ranks, b, out uintptr) int32 {
	return onGroups("Group_translate_ranks", a, b, func(g, h *mpi.Group) error {
		in, err := ints("ranks1", ranks, int(n))
		if err != nil {
			return err
		}
		to, err := g.Translate(in, h)
		if err != nil {
			return err
		}
		return putInts("ranks2", out, int(n), to)
	})
}

//export abiGroupCompare
func abiGroupCompare(a, b, out uintptr) int32 {
	return onGroups("Group_compare", a, b, func(g, h *mpi.Group) error {
		how, err := g.Compare(h)
		if err != nil {
			return err
		}
		return putInt("result", out, comparisons[how])
	})
}

// makeGroup stores a group that is made of two.
func makeGroup(fn string, a, b, out uintptr, f func(g, h *mpi.Group) (*mpi.Group, error)) int32 {
	return onGroups(fn, a, b, func(g, h *mpi.Group) error {
		n, err := f(g, h)
		if err != nil {
			return err
		}
		return put("newgroup", out, newGroup(n, sessionOf(g, h)))
	})
}

//export abiGroupUnion
func abiGroupUnion(a, b, out uintptr) int32 {
	return makeGroup("Group_union", a, b, out, (*mpi.Group).Union)
}

//export abiGroupIntersection
func abiGroupIntersection(a, b, out uintptr) int32 {
	return makeGroup("Group_intersection", a, b, out, (*mpi.Group).Intersection)
}

//export abiGroupDifference
func abiGroupDifference(a, b, out uintptr) int32 {
	return makeGroup("Group_difference", a, b, out, (*mpi.Group).Difference)
}

// selectRanks stores a group of some ranks of another.
func selectRanks(fn string, h uintptr, n int32, ranks, out uintptr, f func(g *mpi.Group, ranks []int) (*mpi.Group, error)) int32 {
	return onGroup(fn, h, func(g *mpi.Group) error {
		in, err := ints("ranks", ranks, int(n))
		if err != nil {
			return err
		}
		made, err := f(g, in)
		if err != nil {
			return err
		}
		return put("newgroup", out, newGroup(made, sessionOf(g)))
	})
}

//export abiGroupIncl
func abiGroupIncl(g uintptr, n int32, ranks, out uintptr) int32 {
	return selectRanks("Group_incl", g, n, ranks, out, (*mpi.Group).Incl)
}

//export abiGroupExcl
func abiGroupExcl(g uintptr, n int32, ranks, out uintptr) int32 {
	return selectRanks("Group_excl", g, n, ranks, out, (*mpi.Group).Excl)
}

// selectRanges is selectRanks of n triplets.
func selectRanges(fn string, h uintptr, n int32, ranges, out uintptr, f func(g *mpi.Group, ranges []mpi.Range) (*mpi.Group, error)) int32 {
	return onGroup(fn, h, func(g *mpi.Group) error {
		in, err := touched[[3]int32]("ranges", ranges, int(n))
		if err != nil {
			return err
		}
		rs := make([]mpi.Range, len(in))
		for i, r := range in {
			rs[i] = mpi.Range{First: int(r[0]), Last: int(r[1]), Stride: int(r[2])}
		}
		made, err := f(g, rs)
		if err != nil {
			return err
		}
		return put("newgroup", out, newGroup(made, sessionOf(g)))
	})
}

//export abiGroupRangeIncl
func abiGroupRangeIncl(g uintptr, n int32, ranges, out uintptr) int32 {
	return selectRanges("Group_range_incl", g, n, ranges, out, (*mpi.Group).RangeIncl)
}

//export abiGroupRangeExcl
func abiGroupRangeExcl(g uintptr, n int32, ranges, out uintptr) int32 {
	return selectRanges("Group_range_excl", g, n, ranges, out, (*mpi.Group).RangeExcl)
}

//export abiGroupFree
func abiGroupFree(p uintptr) int32 {
	return on("Group_free", 0, func() error {
		h, err := result[uintptr]("group", p)
		if err != nil {
			return err
		}
		if *h == groupEmpty {
			*h = groupNull
			return nil
		}
		if g := groups.Get(*h); g != nil {
			if err := (*g).Free(); err != nil {
				return err
			}
			groupSessions.Delete(*g)
		}
		if !groups.Free(*h) {
			return bad(comm.ErrGroup, "group", *h, groupNull)
		}
		*h = groupNull
		return nil
	})
}
