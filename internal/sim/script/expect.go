package script

import "slices"

// Elements of messages and buffers tell their message, or their operation and rank, and their
// index.

func (m *Message) seed() uint64 { return mix(uint64(m.ID)) }

// untouched fills buffers before something is received into them.
const untouched = 0xdead

func (k Kind) blank(n int) vector {
	v := kinds[k].make(n)
	v.fill(untouched)
	return v
}

func (m *Message) content(n int) vector {
	v := kinds[m.Kind].make(n)
	v.fill(m.seed())
	return v
}

// trial is one rank's part of a collective operation, and the result that it must have.
type trial struct {
	send, recv vector // either may be nil
	layout     layout
	out, want  vector // the result buffer and its expected value; nil if there is none
}

// trial makes the buffers of rank me of n, and computes the result from the contributions of all
// ranks. root is a rank in the same communicator.
func (s *Collective) trial(n, me, root int) trial {
	switch s.Call {
	case Barrier:
		return trial{send: kinds[s.Kind].none}
	case Bcast:
		return s.bcast(me, root)
	case Gather, Gatherv:
		return s.gather(n, me, me == root)
	case Allgather, Allgatherv:
		return s.gather(n, me, true)
	case Scatter, Scatterv:
		return s.scatter(n, me, root)
	case Alltoall, Alltoallv:
		return s.alltoall(n, me)
	default: // it has an Op
		return s.reduction(n, me, root)
	}
}

func (s *Collective) own(rank, n int) vector {
	v := kinds[s.Kind].make(n)
	seed := mix(mix(uint64(s.ID)) + uint64(rank))
	if s.Call.reduces() && s.Op == OpProd {
		v.factors(seed)
	} else {
		v.fill(seed)
	}
	return v
}

func (s *Collective) count(i int) int {
	if len(s.Counts) == 1 {
		return s.Counts[0]
	}
	return s.Counts[i]
}

func (s *Collective) total(n int) (total int) {
	for i := range n {
		total += s.count(i)
	}
	return total
}

// place lays blocks out: one after the other, or in reverse order with gaps. Places of nil blocks
// stay untouched.
func (s *Collective) place(counts []int, blocks []vector) (whole vector, displs []int) {
	at := 0
	displs = make([]int, len(counts))
	for i := range counts {
		if s.Gap > 0 {
			i = len(counts) - 1 - i
		}
		at += s.Gap
		displs[i] = at
		at += counts[i]
	}
	whole = s.Kind.blank(at)
	for i, b := range blocks {
		if b != nil {
			whole.copy(displs[i], b)
		}
	}
	if s.Gap == 0 {
		displs = nil
	}
	return whole, displs
}

func lengths(blocks []vector) []int {
	n := make([]int, len(blocks))
	for i, b := range blocks {
		n[i] = b.size()
	}
	return n
}

func (s *Collective) bcast(me, root int) trial {
	t := trial{send: s.Kind.blank(s.Counts[0]), want: s.own(root, s.Counts[0])}
	if me == root {
		t.send = s.own(root, s.Counts[0])
	}
	t.out = t.send
	return t
}

// gather is also for Allgather, where all ranks get what the root gets.
func (s *Collective) gather(n, me int, gets bool) trial {
	t := trial{send: s.own(me, s.count(me))}
	if !gets {
		return t
	}
	blocks := make([]vector, n)
	for r := range blocks {
		blocks[r] = s.own(r, s.count(r))
	}
	t.layout.counts = lengths(blocks)
	t.want, t.layout.displs = s.place(t.layout.counts, blocks)
	there := make([]vector, n)
	if s.InPlace {
		t.send, there[me] = kinds[s.Kind].none, blocks[me]
	}
	t.recv, _ = s.place(t.layout.counts, there)
	t.out = t.recv
	return t
}

func (s *Collective) scatter(n, me, root int) trial {
	all := s.own(root, s.total(n))
	blocks, at := make([]vector, n), 0
	for r := range blocks {
		blocks[r] = all.slice(at, at+s.count(r))
		at += s.count(r)
	}
	t := trial{send: kinds[s.Kind].none, recv: s.Kind.blank(s.count(me)), want: blocks[me]}
	t.out = t.recv
	if me != root {
		return t
	}
	t.layout.counts = lengths(blocks)
	t.send, t.layout.displs = s.place(t.layout.counts, blocks)
	if s.InPlace {
		t.recv, t.out = kinds[s.Kind].none, t.send
		t.want = t.send.clone()
	}
	return t
}

func (s *Collective) parcels(n, from int) []vector {
	count := func(to int) int { return s.count(from*n + to) }
	total := 0
	for to := range n {
		total += count(to)
	}
	all, blocks, at := s.own(from, total), make([]vector, n), 0
	for to := range n {
		blocks[to] = all.slice(at, at+count(to))
		at += count(to)
	}
	return blocks
}

func (s *Collective) alltoall(n, me int) trial {
	var t trial
	blocks := make([]vector, n)
	for from := range n {
		blocks[from] = s.parcels(n, from)[me]
	}
	parcels := s.parcels(n, me)
	counts, rcounts := lengths(parcels), lengths(blocks)
	mine, displs := s.place(counts, parcels)
	t.want, t.layout.rdispls = s.place(rcounts, blocks)
	t.layout.rcounts = rcounts
	if s.InPlace {
		t.send, t.recv = kinds[s.Kind].none, mine
	} else {
		t.send, t.layout.counts, t.layout.displs = mine, counts, displs
		t.recv, _ = s.place(rcounts, nil)
	}
	t.out = t.recv
	return t
}

func (s *Collective) reduction(n, me, root int) trial {
	length := s.Counts[0]
	if s.Call == ReduceScatter || s.Call == ReduceScatterBlock {
		length = s.total(n)
	}
	t := trial{send: s.own(me, length)}
	if s.Call == Reduce && me != root {
		return t
	}
	from, to := 0, length // the part of the result that this rank gets
	if s.Call == ReduceScatter || s.Call == ReduceScatterBlock {
		from = s.total(me)
		to = from + s.count(me)
	}
	t.recv = s.Kind.blank(to - from)
	if s.InPlace {
		t.send, t.recv = kinds[s.Kind].none, t.send
	}
	t.out = t.recv.slice(0, to-from)
	t.want = s.folded(n, me, length).slice(from, to)
	if s.Call == Exscan && me == 0 {
		t.want = t.out.clone()
	}
	return t
}

// folded combines the contributions of the ranks that count for rank me.
func (s *Collective) folded(n, me, length int) vector {
	var ranks int
	switch s.Call {
	case Scan:
		ranks = me + 1
	case Exscan:
		ranks = max(me, 1)
	default: // all count
		ranks = n
	}
	v := s.own(0, length)
	for r := 1; r < ranks; r++ {
		v.combine(s.Op, s.own(r, length))
	}
	return v
}

// in returns size and ranks for a collective operation. On an intercommunicator the members of both
// sides are counted: first the side that accepted, or began.
func (s *Collective) in(g *group, proc int) (n, me, root int) {
	all := g.all()
	return len(all), slices.Index(all, proc), slices.Index(all, s.Root)
}

// trialIn is trial for a proc of a group: on an intercommunicator, Allreduce returns what the other
// side contributes.
func (s *Collective) trialIn(g *group, proc int) trial {
	t := s.trial(s.in(g, proc))
	if g.inter() && s.Call == Allreduce {
		t.want = nil
		for i, r := range g.all() {
			switch v := s.own(i, s.Counts[0]); {
			case !slices.Contains(g.partners(proc), r):
			case t.want == nil:
				t.want = v
			default:
				t.want.combine(s.Op, v)
			}
		}
	}
	return t
}
