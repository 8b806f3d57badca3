package coll

import (
	"testing"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/allocs"
)

// wide makes the planner of rank me of a world of 32 clients with as many
// processes each.
func wide(tb testing.TB, each, me int) *Planner {
	tb.Helper()
	clients := make([]wire.ClientRank, wire.MaxClients*each)
	for p := range clients {
		clients[p] = wire.ClientRank(p / each)
	}
	c, err := comm.New(comm.Spec{Group: comm.NewGroup(0, len(clients)), Self: comm.Proc(me), Clients: comm.NewClients(clients)})
	if err != nil {
		tb.Fatal(err)
	}
	c.Masters() // ranks of a program share them
	return NewPlanner(c, Profile{XSize: 1024, MaxLinear: 4})
}

// everyday plans the operations whose messages are no more than a tree's.
func everyday(tb testing.TB, p *Planner, s *Schedule, root int) {
	value := []uint64{7}
	b := datatype.Bytes(value)
	for _, plan := range []func() error{
		func() error { return p.Barrier(s) },
		func() error { return p.Bcast(s, b, datatype.Uint64, root) },
		func() error { return p.Reduce(s, b, make([]byte, 8), datatype.Uint64, datatype.Max, root) },
		func() error { return p.Allreduce(s, nil, b, datatype.Uint64, datatype.Max) },
	} {
		if err := plan(); err != nil {
			tb.Fatal(err)
		}
	}
}

// A planner takes a few words for each client, and what it plans grows like the
// depth of trees: of a process in the middle not even that.
func TestPlannerMemoryDoesNotGrowWithTheCommunicator(t *testing.T) {
	cost := func(each, place int) (planner, plans int) {
		me := 5*each + place
		p := wide(t, each, me)
		planner = int(allocs.BytesExact(func() { NewPlanner(p.comm, p.profile) }))
		plans = int(allocs.BytesExact(func() { everyday(t, p, new(Schedule), 0) }))
		return planner, plans
	}
	cost(3, 0) // the first measurement makes the runtime's own memory
	for place, most := range map[int]int{0: 12 << 10, 1: 1 << 10} {
		planner, plans := cost(6, place)
		planner2, plans2 := cost(6*521, place)
		t.Logf("place %d: planner %d bytes for 192 ranks and %d for 100,032, plans %d and %d", place, planner, planner2, plans, plans2)
		if planner2 > planner+256 || planner2 > 2<<10 {
			t.Errorf("place %d: planner of %d bytes for 192 ranks, %d for 100,032", place, planner, planner2)
		}
		if plans2 > plans+most {
			t.Errorf("place %d: plans of %d bytes for 192 ranks, %d for 100,032", place, plans, plans2)
		}
	}
}

// Planning looks at neighbours in trees only, so that it is quick in any size.
func BenchmarkEveryday(b *testing.B) {
	for _, each := range []int{6, 3125} {
		b.Run(map[int]string{6: "ranks=192", 3125: "ranks=100000"}[each], func(b *testing.B) {
			p := wide(b, each, 5*each)
			var s Schedule
			b.ReportAllocs()
			for b.Loop() {
				everyday(b, p, &s, 0)
			}
		})
	}
}
