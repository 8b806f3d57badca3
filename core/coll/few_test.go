package coll

import (
	"testing"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/wire"
)

// talk is what each of n processes of one client does: how many messages it sends,
// and how often it waits for some.
func talk(t *testing.T, n int, tuning Tuning, plan func(r int, p *Planner, s *Schedule) error) (sends, rounds []int) {
	t.Helper()
	j := newJob(t, make([]wire.ClientRank, n), Profile{Tuning: tuning}, nil, 1)
	sends, rounds = make([]int, n), make([]int, n)
	for r, p := range j.planners {
		var s Schedule
		if err := plan(r, p, &s); err != nil {
			t.Fatal(err)
		}
		for {
			steps, err := s.Next()
			if err != nil {
				t.Fatal(err)
			}
			if len(steps) == 0 {
				break
			}
			rounds[r]++
			for _, step := range steps {
				if step.Action == Send {
					sends[r]++
				}
			}
		}
	}
	return sends, rounds
}

func sum(v []int) (total int) {
	for _, x := range v {
		total += x
	}
	return total
}

// Among few the root sends to, or gets from, each of the others: none of those
// passes anything on. A barrier is no such operation: nobody is to learn from the
// first alone that a member has died.
func TestFewHaveNoTree(t *testing.T) {
	const root = 1
	small := func(n int) []byte { return make([]byte, 8*n) }
	for _, c := range []struct {
		name  string
		plan  func(r int, p *Planner, s *Schedule) error
		root  int
		sends []int // of four, by rank
	}{
		{"barrier", func(_ int, p *Planner, s *Schedule) error { return p.Barrier(s) }, 0, []int{2, 2, 2, 2}},
		{"bcast", func(_ int, p *Planner, s *Schedule) error { return p.Bcast(s, small(1), datatype.Float64, root) }, root, []int{0, 3, 0, 0}},
		{"long bcast", func(_ int, p *Planner, s *Schedule) error { return p.Bcast(s, small(1<<17), datatype.Float64, root) }, root, []int{0, 3, 0, 0}},
		{"gather", func(_ int, p *Planner, s *Schedule) error {
			return p.Gather(s, small(1), small(4), datatype.Float64, root)
		}, root, []int{1, 0, 1, 1}},
		{"scatter", func(_ int, p *Planner, s *Schedule) error {
			return p.Scatter(s, small(4), small(1), datatype.Float64, root)
		}, root, []int{0, 3, 0, 0}},
		{"reduce", func(_ int, p *Planner, s *Schedule) error {
			return p.Reduce(s, small(1), small(1), datatype.Float64, datatype.Sum, root)
		}, root, []int{1, 0, 1, 1}},
		{"allreduce", func(_ int, p *Planner, s *Schedule) error {
			return p.Allreduce(s, small(1), small(1), datatype.Float64, datatype.Sum)
		}, 0, []int{3, 1, 1, 1}},
		{"alltoall", func(_ int, p *Planner, s *Schedule) error {
			return p.Alltoall(s, small(4), small(4), datatype.Float64)
		}, 0, []int{3, 3, 3, 3}},
	} {
		sends, rounds := talk(t, 4, Tuning{}, c.plan)
		for r, want := range c.sends {
			if sends[r] != want {
				t.Errorf("%s: rank %d sends %d messages, want %d", c.name, r, sends[r], want)
			}
			if r != c.root && rounds[r] > 2 {
				t.Errorf("%s: rank %d waits in %d rounds", c.name, r, rounds[r])
			}
		}
	}
}

// Neither are five few, nor two, nor any where it is turned off, and long vectors
// are reduced in parts, those of two as well.
func TestWhatFewAre(t *testing.T) {
	short := func(_ int, p *Planner, s *Schedule) error {
		return p.Allreduce(s, make([]byte, 8), make([]byte, 8), datatype.Float64, datatype.Sum)
	}
	for _, c := range []struct {
		n      int
		tuning Tuning
		want   int
	}{
		{4, Tuning{}, 6}, {3, Tuning{}, 4}, {2, Tuning{}, 2}, {5, Tuning{}, 10},
		{4, Tuning{FlatProcs: -1}, 8}, {5, Tuning{FlatProcs: 5}, 8}, {MaxFlatProcs + 1, Tuning{FlatProcs: 100}, 26},
	} {
		if sends, _ := talk(t, c.n, c.tuning, short); sum(sends) != c.want {
			t.Errorf("short allreduce of %d, %+v: %d messages, want %d", c.n, c.tuning, sum(sends), c.want)
		}
	}
	allreduce := func(_ int, p *Planner, s *Schedule) error {
		return p.Allreduce(s, make([]byte, 4096), make([]byte, 4096), datatype.Float64, datatype.Sum)
	}
	for tuning, want := range map[Tuning]int{{}: 6, {FlatAllreduceLong: 4096}: 24, {FlatAllreduceLong: 4097}: 6, {FlatProcs: -1, AllreduceLong: 4097}: 8} {
		if sends, _ := talk(t, 4, tuning, allreduce); sum(sends) != want {
			t.Errorf("allreduce, %+v: %d messages, want %d", tuning, sum(sends), want)
		}
	}
	for tuning, want := range map[Tuning]int{{}: 2, {PairAllreduceLong: 4096}: 4, {PairAllreduceLong: 4097}: 2} {
		if sends, _ := talk(t, 2, tuning, allreduce); sum(sends) != want {
			t.Errorf("allreduce of two, %+v: %d messages, want %d", tuning, sum(sends), want)
		}
	}
}
