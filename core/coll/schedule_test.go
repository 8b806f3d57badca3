package coll

import (
	"errors"
	"testing"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/wire"
)

// planner is rank me of a communicator with these clients.
func planner(t testing.TB, me int, clients ...wire.ClientRank) *Planner {
	return newJob(t, clients, usual, nil, 1).planners[me]
}

// TestNoAllocations plans into a schedule that was used before.
func TestNoAllocations(t *testing.T) {
	for i, clients := range [][]wire.ClientRank{{0, 0, 0, 0, 0}, {0, 1, 1, 0, 2}, {0, 0, 0, 0, 0}, {0, 0, 0, 1, 0}} {
		p := planner(t, 0, clients...)
		if i > 1 {
			hosts := comm.NewClients(append(make([]wire.ClientRank, 100), 0, 0, 1, 1, 2))
			profile := ours
			profile.Hosts = hosts
			p = newJob(t, clients, profile, nil, 1).planners[0]
		}
		buf, all := make([]byte, 800), make([]byte, 4000)
		counts := []int{100, 100, 100, 100, 100}
		plans := map[string]func(s *Schedule) error{
			"barrier":   p.Barrier,
			"bcast":     func(s *Schedule) error { return p.Bcast(s, buf, datatype.Float64, 0) },
			"reduce":    func(s *Schedule) error { return p.Reduce(s, nil, buf, datatype.Float64, datatype.Sum, 0) },
			"allreduce": func(s *Schedule) error { return p.Allreduce(s, nil, buf, datatype.Float64, datatype.Sum) },
			"gather":    func(s *Schedule) error { return p.Gather(s, buf, all, datatype.Float64, 0) },
			"gatherv":   func(s *Schedule) error { return p.Gatherv(s, buf, all, counts, nil, datatype.Float64, 0) },
			"scatter":   func(s *Schedule) error { return p.Scatter(s, all, buf, datatype.Float64, 0) },
			"alltoall":  func(s *Schedule) error { return p.Alltoall(s, nil, all, datatype.Float64) },
			"scan":      func(s *Schedule) error { return p.Scan(s, nil, buf, datatype.Float64, datatype.Sum) },
		}
		for name, plan := range plans {
			var s Schedule
			n := testing.AllocsPerRun(20, func() {
				if err := plan(&s); err != nil {
					t.Fatal(err)
				}
				for {
					steps, err := s.Next()
					if err != nil {
						t.Fatal(err)
					}
					if len(steps) == 0 {
						return
					}
				}
			})
			if n > 0 {
				t.Errorf("clients %v: %s allocates %v times", clients, name, n)
			}
		}
	}
}

// TestEncodeOnce sends one buffer to two peers: it is converted once, but again
// after it may have changed, and in another round.
func TestEncodeOnce(t *testing.T) {
	var s Schedule
	buf, other := make([]byte, 8), make([]byte, 8)
	first := s.encode(datatype.External32, buf, datatype.PairInt16)
	if again := s.encode(datatype.External32, buf, datatype.PairInt16); !same(first, again) {
		t.Error("converted twice")
	}
	s.copy(buf, other)
	second := s.encode(datatype.External32, buf, datatype.PairInt16)
	if same(first, second) {
		t.Error("not converted again after the buffer changed")
	}
	s.add(Step{Action: Send, Src: second})
	s.wait()
	if third := s.encode(datatype.External32, buf, datatype.PairInt16); same(second, third) {
		t.Error("not converted again in the next round")
	}
}

func TestResetForgetsBuffers(t *testing.T) {
	p := planner(t, 0, 0, 0, 0)
	var s Schedule
	if err := p.Bcast(&s, make([]byte, 80), datatype.Int8, 0); err != nil {
		t.Fatal(err)
	}
	used := s.steps
	s.Reset()
	for i := range used {
		if used[i].Src != nil || used[i].Dst != nil {
			t.Errorf("step %d still holds a buffer", i)
		}
	}
	if steps, err := s.Next(); steps != nil || err != nil {
		t.Errorf("a schedule that was reset has steps %v, error %v", steps, err)
	}
}

// TestArena takes blocks of many sizes: none may overlap, all are aligned, and
// after a reset one block is enough.
func TestArena(t *testing.T) {
	var a arena
	for range 3 {
		var got [][]byte
		for n := range 300 {
			b := a.get(n)
			if len(b) != n {
				t.Fatalf("got %d bytes, want %d", len(b), n)
			}
			if n > 0 {
				datatype.View[complex128](b) // panics if not aligned
			}
			for i := range b {
				b[i] = byte(n)
			}
			got = append(got, b)
		}
		for n, b := range got {
			for _, x := range b {
				if x != byte(n) {
					t.Fatalf("block %d was overwritten", n)
				}
			}
		}
		a.reset()
	}
	if n := testing.AllocsPerRun(100, func() { a.get(3000); a.get(40000); a.reset() }); n > 0 {
		t.Errorf("%v allocations in a used arena", n)
	}
	a.get(keep + 1)
	a.reset()
	if len(a.block) > keep {
		t.Errorf("keeps %d bytes", len(a.block))
	}
}

// TestArguments has one case per rule that a process can check by itself.
func TestArguments(t *testing.T) {
	p := planner(t, 1, 0, 0, 1)
	var s Schedule
	b := make([]byte, 240)
	i64 := datatype.Int64
	for name, c := range map[string]struct {
		got  error
		want error
	}{
		"root below":              {p.Bcast(&s, b, i64, -1), ErrRoot},
		"root above":              {p.Gather(&s, b, b, i64, 3), ErrRoot},
		"root of scatter":         {p.Scatter(&s, b, b, i64, 3), ErrRoot},
		"root of gatherv":         {p.Gatherv(&s, b, nil, nil, nil, i64, 3), ErrRoot},
		"root of scatterv":        {p.Scatterv(&s, nil, nil, nil, b, i64, 3), ErrRoot},
		"root of reduce":          {p.Reduce(&s, b, b, i64, datatype.Sum, 3), ErrRoot},
		"half an element":         {p.Bcast(&s, b[:9], i64, 0), ErrBuffer},
		"no kind":                 {p.Bcast(&s, b, 0, 0), datatype.ErrKind},
		"overlap":                 {p.Allreduce(&s, b[:80], b[40:120], i64, datatype.Sum), ErrBuffer},
		"overlap of one byte":     {p.Alltoall(&s, b[:24], b[23:47], datatype.Byte), ErrBuffer},
		"unequal buffers":         {p.Allreduce(&s, b[:8], b[80:96], i64, datatype.Sum), ErrBuffer},
		"gather too small":        {p.Gather(&s, b[:8], b[80:96], i64, 1), ErrBuffer},
		"gather in place uneven":  {p.Gather(&s, nil, b[:32], i64, 1), ErrBuffer},
		"scatter too large":       {p.Scatter(&s, b[:24], b[80:96], i64, 1), ErrBuffer},
		"allgather":               {p.Allgather(&s, b[:8], b[80:88], i64), ErrBuffer},
		"alltoall uneven":         {p.Alltoall(&s, b[:40], b[80:120], i64), ErrBuffer},
		"alltoall unequal":        {p.Alltoall(&s, b[:24], b[80:128], i64), ErrBuffer},
		"counts missing":          {p.Gatherv(&s, b[:8], b[80:], []int{1}, nil, i64, 1), ErrCount},
		"displacements missing":   {p.Gatherv(&s, b[:8], b[80:], []int{1, 1, 1}, []int{1}, i64, 1), ErrCount},
		"negative count":          {p.Gatherv(&s, b[:8], b[80:], []int{1, 1, -1}, nil, i64, 1), ErrCount},
		"negative displacement":   {p.Gatherv(&s, b[:8], b[80:], []int{1, 1, 1}, []int{0, 1, -2}, i64, 1), ErrCount},
		"count beyond the buffer": {p.Scatterv(&s, b[:24], []int{1, 1, 2}, nil, b[80:88], i64, 1), ErrBuffer},
		"huge displacement":       {p.Scatterv(&s, b[:24], []int{1, 1, 1}, []int{0, 1, maxInt}, b[80:88], i64, 1), ErrBuffer},
		"own count":               {p.Allgatherv(&s, b[:16], b[80:104], []int{1, 1, 1}, nil, i64), ErrBuffer},
		"self count":              {p.Alltoallv(&s, b[:24], []int{1, 1, 1}, nil, b[80:104], []int{1, 0, 1}, nil, i64), ErrCount},
		"operation and kind":      {p.Reduce(&s, b[:8], nil, datatype.Float64, datatype.BAnd, 0), datatype.ErrOp},
		"operation of scan":       {p.Scan(&s, nil, b, datatype.Complex128, datatype.Max), datatype.ErrOp},
		"no operation":            {p.Exscan(&s, nil, b, i64, nil), datatype.ErrOp},
		"reduce_scatter total":    {p.ReduceScatter(&s, b[:32], b[80:88], []int{1, 1, 1}, i64, datatype.Sum), ErrBuffer},
		"reduce_scatter result":   {p.ReduceScatter(&s, b[:24], b[80:96], []int{1, 1, 1}, i64, datatype.Sum), ErrBuffer},
		"reduce_scatter op":       {p.ReduceScatter(&s, b[:24], b[80:88], []int{1, 1, 1}, i64, datatype.MaxLoc), datatype.ErrOp},
		"blocks of unequal size":  {p.ReduceScatterBlock(&s, b[:32], b[80:88], i64, datatype.Sum), ErrBuffer},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
}

// TestNotSignificant passes nonsense where MPI says that it is not looked at.
func TestNotSignificant(t *testing.T) {
	p := planner(t, 1, 0, 0, 1)
	var s Schedule
	b, odd := make([]byte, 16), make([]byte, 3)
	for name, err := range map[string]error{
		"gather recv":    p.Gather(&s, b, odd, datatype.Int64, 0),
		"gatherv counts": p.Gatherv(&s, b, odd, []int{-1}, []int{1, 2}, datatype.Int64, 0),
		"scatter send":   p.Scatter(&s, odd, b, datatype.Int64, 0),
		"scatterv send":  p.Scatterv(&s, b, []int{-4}, nil, b, datatype.Int64, 0),
		"reduce recv":    p.Reduce(&s, b, b[:1], datatype.Int64, datatype.Sum, 0),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBadLengths gives a master lengths from its own client that cannot be.
func TestBadLengths(t *testing.T) {
	for _, n := range []uint64{3, 1 << 63, ^uint64(0)} {
		p := planner(t, 1, 0, 1, 1)
		var s Schedule
		if err := p.Gatherv(&s, make([]byte, 8), nil, nil, nil, datatype.Int64, 0); err != nil {
			t.Fatal(err)
		}
		steps, err := s.Next()
		if err != nil || len(steps) != 1 || steps[0].Action != Recv {
			t.Fatalf("%v, %v", steps, err)
		}
		for i := range 8 {
			steps[0].Dst[i] = byte(n >> (56 - 8*i))
		}
		if _, err := s.Next(); !errors.Is(err, ErrCount) {
			t.Errorf("length %d: %v", n, err)
		}
	}
}
