package coll

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/wire"
)

// own is a client's own MPI in tests: what its members have begun, in their order.
type own struct {
	begun  [][]*joined // by number of the phase
	counts map[int]int // phases that a rank has begun
}

type joined struct {
	place int
	step  Step
	m     *message
}

// withPhases gives every other client an MPI of its own, which does some phases.
func (j *job) withPhases(rng *rand.Rand) {
	skip := Phase(rng.IntN(12)) // a phase that it does not do, if there is one of that number
	does := func(ph Phase, _ datatype.Kind, op *datatype.Op) bool {
		return ph != skip && (op == nil || op.Predefined())
	}
	j.own = map[wire.ClientRank]*own{}
	for r, p := range j.planners {
		if j.clients[r]%2 == 0 && p.remote == nil {
			j.planners[r] = p.WithPhases(does)
		}
	}
}

// join has a process take part in a phase, which is done when all members of the client have.
func (j *job) join(p *process, t *Step) {
	j.t.Helper()
	client := j.clients[p.rank]
	o := j.own[client]
	if o == nil {
		o = &own{counts: map[int]int{}}
		j.own[client] = o
	}
	n := o.counts[p.rank]
	o.counts[p.rank]++
	if n == len(o.begun) {
		o.begun = append(o.begun, nil)
	}
	m := &message{src: p.rank, dst: p.rank}
	p.open = append(p.open, m)
	team := j.planners[p.rank].team
	o.begun[n] = append(o.begun[n], &joined{team.me, *t, m})
	if all := o.begun[n]; len(all) == team.size() {
		byPlace := make([]*joined, len(all))
		for _, x := range all {
			byPlace[x.place] = x
			x.m.complete = true
			if s := x.step; s.Phase != t.Phase || s.Peer != t.Peer || s.Count != t.Count || s.Op != t.Op || s.Kind != t.Kind && s.Op != nil {
				j.t.Fatalf("rank %d begins %+v, rank %d %+v", x.m.src, s, p.rank, *t)
			}
		}
		j.perform(byPlace)
	}
}

func (j *job) perform(all []*joined) {
	j.t.Helper()
	root := int(all[0].step.Peer)
	put := func(dst, src []byte) {
		if len(dst) != len(src) {
			j.t.Fatalf("phase %d: %d bytes into %d", all[0].step.Phase, len(src), len(dst))
		}
		copy(dst, src)
	}
	// block is what a process gives for another one, of a vector of n blocks.
	block := func(b []byte, i int) []byte { return b[i*len(b)/len(all):][:len(b)/len(all)] }
	switch t := all[0].step; t.Phase {
	case PhaseBarrier:
	case PhaseBcast:
		for _, x := range all {
			put(x.step.Dst, all[root].step.Dst)
		}
	case PhaseReduce, PhaseAllreduce:
		var sum []byte
		for i := range all { // the last first: a library may combine in any order
			s := all[len(all)-1-i].step
			in := s.Src
			if in == nil {
				in = s.Dst
			}
			if sum == nil {
				sum = append(alloc(len(in))[:0], in...)
			} else if err := t.Op.Apply(in, sum, t.Kind, t.Count); err != nil {
				j.t.Fatal(err)
			}
		}
		for i, x := range all {
			if t.Phase == PhaseAllreduce || i == root {
				put(x.step.Dst, sum)
			}
		}
	case PhaseGather, PhaseAllgather:
		for i, x := range all {
			if t.Phase == PhaseGather && i != root {
				continue
			}
			for k, from := range all {
				if from.step.Src != nil {
					put(block(x.step.Dst, k), from.step.Src)
				} else if k != i {
					put(block(x.step.Dst, k), block(from.step.Dst, k))
				}
			}
		}
	case PhaseAlltoall:
		given := make([][]byte, len(all))
		for i, x := range all {
			if given[i] = x.step.Src; given[i] == nil {
				given[i] = bytes.Clone(x.step.Dst)
			}
		}
		for i, x := range all {
			for k := range all {
				put(block(x.step.Dst, k), block(given[k], i))
			}
		}
	case NoPhase:
		j.t.Fatal("no phase")
	}
}

// TestPhasesReplaceMessages: where a client's own MPI does a phase there are no messages inside the
// client, and between clients there are the same ones as without.
func TestPhasesReplaceMessages(t *testing.T) {
	const (
		elements = 6
		long     = 8 << 10 // bytes: they do not go by way of masters
	)
	for name, plan := range map[string]func(r int, p *Planner, s *Schedule) error{
		"Barrier": func(_ int, p *Planner, s *Schedule) error { return p.Barrier(s) },
		"Bcast": func(_ int, p *Planner, s *Schedule) error {
			return p.Bcast(s, alloc(4*elements), datatype.Int32, 1)
		},
		"Reduce": func(r int, p *Planner, s *Schedule) error {
			return p.Reduce(s, alloc(4*elements), alloc(4*elements), datatype.Int32, datatype.Sum, 1)
		},
		"Allreduce": func(_ int, p *Planner, s *Schedule) error {
			return p.Allreduce(s, alloc(4*elements), alloc(4*elements), datatype.Int32, datatype.Sum)
		},
		"Gather": func(_ int, p *Planner, s *Schedule) error {
			return p.Gather(s, alloc(4*elements), alloc(p.n*4*elements), datatype.Int32, 1)
		},
		"Allgather": func(_ int, p *Planner, s *Schedule) error {
			return p.Allgather(s, alloc(4*elements), alloc(p.n*4*elements), datatype.Int32)
		},
		"Alltoall of long blocks": func(_ int, p *Planner, s *Schedule) error {
			return p.Alltoall(s, alloc(p.n*long), alloc(p.n*long), datatype.Int32)
		},
	} {
		for _, clients := range [][]wire.ClientRank{{0, 0, 0, 0, 0}, {0, 0, 0, 2, 2, 2}, {2, 0, 2, 0, 0, 2}} {
			j := newJob(t, clients, Profile{XSize: 1024, MaxLinear: 4, AllImpi: true}, nil, 1)
			j.run(plan)
			between := j.levels[2]
			j.own = map[wire.ClientRank]*own{}
			for r, p := range j.planners {
				j.planners[r] = p.WithPhases(func(Phase, datatype.Kind, *datatype.Op) bool { return true })
			}
			j.run(plan)
			if j.levels[0].messages != 0 || j.levels[2] != between {
				t.Errorf("%s of %v: %+v, between clients it was %+v", name, clients, j.levels, between)
			}
		}
	}
}
