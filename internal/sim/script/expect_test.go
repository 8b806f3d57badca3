package script

import "testing"

// join puts vectors one after the other; a number is that many untouched
// elements, which are what a blank buffer has at that place.
func join(k Kind, parts ...any) vector {
	n := 0
	for _, p := range parts {
		if v, ok := p.(vector); ok {
			n += v.size()
		} else {
			n += p.(int)
		}
	}
	whole, at := k.blank(n), 0
	for _, p := range parts {
		if v, ok := p.(vector); ok {
			whole.copy(at, v)
			at += v.size()
		} else {
			at += p.(int)
		}
	}
	return whole
}

func TestExpectedResults(t *testing.T) {
	coll := func(call Call, counts ...int) Collective {
		return Collective{ID: 5, Call: call, Kind: Int16, Counts: counts}
	}
	gapped := func(s Collective) Collective { s.Gap = 1; return s }
	placed := func(s Collective) Collective { s.InPlace = true; return s }
	own := func(rank, n int) vector { s := coll(Bcast); return s.own(rank, n) }
	for name, c := range map[string]struct {
		s    Collective
		me   int
		recv vector // before
		want vector
	}{
		"bcast":            {coll(Bcast, 3), 0, nil, own(1, 3)},
		"gather":           {coll(Gather, 2), 1, join(Int16, 6), join(Int16, own(0, 2), own(1, 2), own(2, 2))},
		"gather, other":    {coll(Gather, 2), 2, nil, nil},
		"gather in place":  {placed(coll(Gather, 2)), 1, join(Int16, 2, own(1, 2), 2), join(Int16, own(0, 2), own(1, 2), own(2, 2))},
		"gatherv":          {coll(Gatherv, 1, 0, 2), 1, join(Int16, 3), join(Int16, own(0, 1), own(2, 2))},
		"gatherv, gaps":    {gapped(coll(Gatherv, 1, 3, 2)), 1, join(Int16, 9), join(Int16, 1, own(2, 2), 1, own(1, 3), 1, own(0, 1))},
		"allgather":        {coll(Allgather, 1), 2, join(Int16, 3), join(Int16, own(0, 1), own(1, 1), own(2, 1))},
		"scatter":          {coll(Scatter, 2), 2, join(Int16, 2), own(1, 6).slice(4, 6)},
		"scatterv":         {coll(Scatterv, 4, 1, 2), 0, join(Int16, 4), own(1, 7).slice(0, 4)},
		"scatterv, gaps":   {gapped(coll(Scatterv, 4, 1, 2)), 2, join(Int16, 2), own(1, 7).slice(5, 7)},
		"scatter in place": {placed(coll(Scatter, 2)), 1, kinds[Int16].none, own(1, 6)},
		"alltoall":         {coll(Alltoall, 2), 1, join(Int16, 6), join(Int16, own(0, 6).slice(2, 4), own(1, 6).slice(2, 4), own(2, 6).slice(2, 4))},
		"alltoallv": {coll(Alltoallv, 0, 1, 2, 3, 4, 5, 6, 7, 8), 0, join(Int16, 9),
			join(Int16, own(1, 12).slice(0, 3), own(2, 21).slice(0, 6))},
		"alltoallv, gaps": {gapped(coll(Alltoallv, 0, 1, 2, 3, 4, 5, 6, 7, 8)), 0, join(Int16, 12),
			join(Int16, 1, own(2, 21).slice(0, 6), 1, own(1, 12).slice(0, 3), 1)},
	} {
		tr := c.s.trial(3, c.me, 1)
		check := func(what string, got, want vector) {
			if (got == nil) != (want == nil) {
				t.Errorf("%s: %s is there: %v", name, what, got != nil)
			} else if got != nil && got.differs(want) != "" {
				t.Errorf("%s: %s: %s", name, what, got.differs(want))
			}
		}
		check("the buffer", tr.recv, c.recv)
		check("the result", tr.want, c.want)
	}
}

// Replaces what own returns by small numbers, so that reductions can be checked.
func TestExpectedReductions(t *testing.T) {
	vec := func(v ...int32) vector { return &elements[int32]{a: kinds[Int32].make(0).(*elements[int32]).a, v: v} }
	sum := func(ranks ...int) vector {
		s := Collective{ID: 5, Kind: Int32, Call: Allreduce}
		total := s.own(ranks[0], 3)
		for _, r := range ranks[1:] {
			for i, v := range s.own(r, 3).(*elements[int32]).v {
				total.(*elements[int32]).v[i] += v
			}
		}
		return total
	}
	for name, c := range map[string]struct {
		s    Collective
		me   int
		want vector
	}{
		"reduce":               {Collective{Call: Reduce, Counts: []int{3}}, 1, sum(0, 1, 2)},
		"allreduce":            {Collective{Call: Allreduce, Counts: []int{3}}, 2, sum(0, 1, 2)},
		"scan":                 {Collective{Call: Scan, Counts: []int{3}}, 1, sum(0, 1)},
		"exscan":               {Collective{Call: Exscan, Counts: []int{3}}, 2, sum(0, 1)},
		"exscan, first":        {Collective{Call: Exscan, Counts: []int{3}}, 0, Int32.blank(3)},
		"reduce_scatter":       {Collective{Call: ReduceScatter, Counts: []int{0, 2, 1}}, 1, sum(0, 1, 2).slice(0, 2)},
		"reduce_scatter_block": {Collective{Call: ReduceScatterBlock, Counts: []int{1}}, 2, sum(0, 1, 2).slice(2, 3)},
	} {
		c.s.ID, c.s.Kind = 5, Int32
		if tr := c.s.trial(3, c.me, 1); tr.want == nil || tr.want.differs(c.want) != "" {
			t.Errorf("%s: %v", name, tr.want)
		}
	}
	for _, c := range []struct {
		op         Op
		a, b, want int32
	}{
		{OpSum, 3, 4, 7}, {OpProd, 3, 4, 12}, {OpMax, 3, 4, 4}, {OpMin, 3, 4, 3}, {OpLAnd, 3, 0, 0}, {OpLOr, 3, 0, 1}, {OpLXor, 3, 4, 0},
		{OpBAnd, 6, 3, 2}, {OpBOr, 6, 3, 7}, {OpBXor, 6, 3, 5}, {OpRight, 6, 3, 3}, {OpModulo, 1<<31 - 2, 3, 2},
	} {
		v := vec(c.a)
		if v.combine(c.op, vec(c.b)); v.differs(vec(c.want)) != "" {
			t.Errorf("%d %s %d: %s", c.a, c.op, c.b, v.differs(vec(c.want)))
		}
	}
	if got := affine(2<<32|1, 3<<32|5); got != 6<<32|8 { // 3(2x+1)+5
		t.Errorf("affine gives %#x", got)
	}
}

// The hash tells contents apart that a fault could exchange.
func TestSums(t *testing.T) {
	for k := range kinds {
		seen := map[uint64]int{}
		for id := range 40 {
			m := Message{ID: id, Kind: Kind(k)}
			v := m.content(200)
			if d := v.unlike(m.seed()); d != "" {
				t.Errorf("%s: %s", Kind(k), d)
			}
			if other, there := seen[v.sum(200)]; there {
				t.Errorf("%s: messages %d and %d have one sum", Kind(k), id, other)
			}
			seen[v.sum(200)] = id
			if v.sum(199) == v.sum(200) || v.slice(1, 200).sum(199) == v.slice(0, 199).sum(199) {
				t.Errorf("%s: a sum does not depend on length or place", Kind(k))
			}
		}
	}
}
