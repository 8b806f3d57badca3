package coll

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/wire"
)

// topologies are one for each member, of one kind.
type topologies []comm.Topology

// connect gives the members of j a topology.
func (j *job) connect(all topologies) {
	j.t.Helper()
	n := len(j.clients)
	table := comm.NewClients(append(make([]wire.ClientRank, 100), j.clients...))
	for r, p := range j.planners {
		c, err := comm.New(comm.Spec{Context: testContext, Group: comm.NewGroup(100, n), Self: comm.Proc(100 + r),
			Clients: table, Topology: all[r]})
		if err != nil {
			j.t.Fatal(err)
		}
		j.planners[r] = NewPlanner(c, p.profile)
	}
}

// arrangements are topologies of n members of all kinds.
func arrangements(t *testing.T, n int, rng *rand.Rand) map[string]topologies {
	t.Helper()
	all := map[string]topologies{}
	for _, periodic := range []bool{false, true} {
		dims := make([]int, 1+rng.IntN(3))
		if err := comm.DimsCreate(n, dims); err != nil {
			t.Fatal(err)
		}
		periods := make([]bool, len(dims))
		for i := range periods {
			periods[i] = periodic
		}
		cart, err := comm.NewCart(dims, periods, n)
		if err != nil {
			t.Fatal(err)
		}
		all[fmt.Sprintf("grid %v, rings: %v", dims, periodic)] = sameFor(n, cart)
	}
	all["graph"] = sameFor(n, randomGraph(t, n, rng))
	all["distributed graph"] = randomDistGraph(t, n, rng)
	return all
}

// sameFor is one topology for all.
func sameFor(n int, one comm.Topology) topologies {
	all := make(topologies, n)
	for r := range all {
		all[r] = one
	}
	return all
}

// randomGraph has as many edges to as from; some are there twice, some lead back.
func randomGraph(t *testing.T, n int, rng *rand.Rand) *comm.Graph {
	t.Helper()
	lists := make([][]int, n)
	for range 2 * n {
		a, b := rng.IntN(n), rng.IntN(n)
		lists[a] = append(lists[a], b)
		if a != b {
			lists[b] = append(lists[b], a)
		}
	}
	var index, edges []int
	for _, l := range lists {
		edges = append(edges, l...)
		index = append(index, len(edges))
	}
	g, err := comm.NewGraph(index, edges, n)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func randomDistGraph(t *testing.T, n int, rng *rand.Rand) topologies {
	t.Helper()
	known := make([]comm.Adjacent, n)
	for range 3 * n {
		a, b := rng.IntN(n), rng.IntN(n)
		known[a].Dests = append(known[a].Dests, b)
		known[b].Sources = append(known[b].Sources, a)
	}
	all := make(topologies, n)
	for r := range all {
		g, err := comm.NewDistGraph(known[r], n)
		if err != nil {
			t.Fatal(err)
		}
		all[r] = g
	}
	return all
}

// feeds says for each rank and each place of its In which rank's which place of
// Out comes there, worked out from the definitions: on a grid what goes down
// comes from above, elsewhere the k-th edge of a pair of ranks is the k-th.
func feeds(t *testing.T, all topologies) (lists []comm.Neighbours, from [][][2]int) {
	t.Helper()
	for r := range all {
		n, err := all[r].Neighbours(r)
		if err != nil {
			t.Fatal(err)
		}
		lists = append(lists, n)
	}
	for r, n := range lists {
		in := make([][2]int, len(n.In))
		for i, source := range n.In {
			in[i] = [2]int{-1, -1}
			if source == comm.ProcNull {
				continue
			}
			if _, grid := all[r].(*comm.Cart); grid {
				in[i] = [2]int{source, i ^ 1}
				continue
			}
			kth := 0
			for _, earlier := range n.In[:i] {
				if earlier == source {
					kth++
				}
			}
			for o, dest := range lists[source].Out {
				if dest == r {
					if kth == 0 {
						in[i] = [2]int{source, o}
					}
					kth--
				}
			}
		}
		from = append(from, in)
	}
	return lists, from
}

// neighborhoods runs f for members, clients and topologies of all kinds.
func neighborhoods(t *testing.T, f func(t *testing.T, j *job, lists []comm.Neighbours, from [][][2]int)) {
	everywhere(t, func(t *testing.T, j *job) {
		for name, all := range arrangements(t, len(j.clients), j.rng) {
			j.connect(all)
			lists, from := feeds(t, all)
			f(t, j, lists, from)
			if t.Failed() {
				t.Fatalf("on a %s", name)
			}
		}
	})
}

// untouched is what memory has that nothing is received into.
const untouched = 77

func TestNeighborAllgather(t *testing.T) {
	neighborhoods(t, func(t *testing.T, j *job, lists []comm.Neighbours, from [][][2]int) {
		n := j.size()
		got, want := make([][]int64, len(lists)), make([][]int64, len(lists))
		for r := range lists {
			for _, f := range from[r] {
				got[r] = append(got[r], filled(n)...)
				if f[0] < 0 {
					want[r] = append(want[r], filled(n)...)
				} else {
					want[r] = append(want[r], data(f[0], n)...)
				}
			}
		}
		j.run(func(r int, p *Planner, s *Schedule) error {
			return p.NeighborAllgather(s, b64(data(r, n)), b64(got[r]), datatype.Int64)
		})
		for r := range got {
			equal(t, "allgather of neighbours", r, got[r], want[r])
		}
	})
}

func filled(n int) []int64 {
	s := make([]int64, n)
	for i := range s {
		s[i] = untouched
	}
	return s
}

func TestNeighborAllgatherv(t *testing.T) {
	neighborhoods(t, func(t *testing.T, j *job, lists []comm.Neighbours, from [][][2]int) {
		got, want, counts, displs := v(lists), v(lists), make([][]int, len(lists)), make([][]int, len(lists))
		for r := range lists {
			for i := len(from[r]) - 1; i >= 0; i-- { // last ones first, with a gap
				counts[r], displs[r] = append([]int{1}, counts[r]...), append([]int{len(got[r])}, displs[r]...)
				part := filled(1)
				if source := from[r][i][0]; source >= 0 {
					counts[r][0] = source % 5
					part = data(source, source%5)
				}
				got[r] = append(append(got[r], filled(len(part))...), untouched)
				want[r] = append(append(want[r], part...), untouched)
			}
		}
		j.run(func(r int, p *Planner, s *Schedule) error {
			return p.NeighborAllgatherv(s, b64(data(r, r%5)), b64(got[r]), counts[r], displs[r], datatype.Int64)
		})
		for r := range got {
			equal(t, "allgatherv of neighbours", r, got[r], want[r])
		}
	})
}

func v(lists []comm.Neighbours) [][]int64 { return make([][]int64, len(lists)) }

// part is what rank r sends to place o of its Out.
func part(r, o, n int) []int64 {
	d := data(r, n)
	for i := range d {
		d[i] += int64(o+1) << 24
	}
	return d
}

func TestNeighborAlltoall(t *testing.T) {
	neighborhoods(t, func(t *testing.T, j *job, lists []comm.Neighbours, from [][][2]int) {
		n := j.size()
		out, got, want := v(lists), v(lists), v(lists)
		for r := range lists {
			for o := range lists[r].Out {
				out[r] = append(out[r], part(r, o, n)...)
			}
			for _, f := range from[r] {
				got[r] = append(got[r], filled(n)...)
				if f[0] < 0 {
					want[r] = append(want[r], filled(n)...)
				} else {
					want[r] = append(want[r], part(f[0], f[1], n)...)
				}
			}
		}
		j.run(func(r int, p *Planner, s *Schedule) error {
			return p.NeighborAlltoall(s, b64(out[r]), b64(got[r]), datatype.Int64)
		})
		for r := range got {
			equal(t, "alltoall of neighbours", r, got[r], want[r])
		}
	})
}

// The lengths of parts differ; Alltoallw has them as pieces of their own.
func TestNeighborAlltoallvw(t *testing.T) {
	neighborhoods(t, func(t *testing.T, j *job, lists []comm.Neighbours, from [][][2]int) {
		size := func(r, o int) int { return (r + 2*o) % 4 }
		out, got, want := v(lists), v(lists), v(lists)
		scounts, rcounts := make([][]int, len(lists)), make([][]int, len(lists))
		for r := range lists {
			for o := range lists[r].Out {
				out[r] = append(out[r], part(r, o, size(r, o))...)
				scounts[r] = append(scounts[r], size(r, o))
			}
			for _, f := range from[r] {
				piece := filled(2)
				if f[0] >= 0 {
					piece = part(f[0], f[1], size(f[0], f[1]))
				}
				rcounts[r] = append(rcounts[r], len(piece))
				got[r], want[r] = append(got[r], filled(len(piece))...), append(want[r], piece...)
			}
		}
		j.run(func(r int, p *Planner, s *Schedule) error {
			return p.NeighborAlltoallv(s, b64(out[r]), scounts[r], nil, b64(got[r]), rcounts[r], nil, datatype.Int64)
		})
		for r := range got {
			equal(t, "alltoallv of neighbours", r, got[r], want[r])
			got[r] = filled(len(got[r]))
		}
		j.run(func(r int, p *Planner, s *Schedule) error {
			return p.NeighborAlltoallw(s, cut(out[r], scounts[r]), cut(got[r], rcounts[r]))
		})
		for r := range got {
			equal(t, "alltoallw of neighbours", r, got[r], want[r])
		}
	})
}

func cut(all []int64, counts []int) []Piece {
	list := make([]Piece, len(counts))
	for i, n := range counts {
		list[i] = Piece{b64(all[:n]), datatype.Int64}
		all = all[n:]
	}
	return list
}

func TestNeighborFaults(t *testing.T) {
	ring, err := comm.NewCart([]int{3}, []bool{true}, 3)
	if err != nil {
		t.Fatal(err)
	}
	lopsided, err := comm.NewGraph([]int{1, 1, 1}, []int{1}, 3)
	if err != nil {
		t.Fatal(err)
	}
	b := func(n int) []byte { return make([]byte, n) }
	more, err := comm.NewDistGraph(comm.Adjacent{Dests: []int{0}}, 3)
	if err != nil {
		t.Fatal(err)
	}
	fewer, err := comm.NewDistGraph(comm.Adjacent{Sources: []int{0}}, 3)
	if err != nil {
		t.Fatal(err)
	}
	shared := b(16)
	for name, c := range map[string]struct {
		topology comm.Topology
		plan     func(p *Planner, s *Schedule) error
		want     error
	}{
		"no topology":      {nil, func(p *Planner, s *Schedule) error { return p.NeighborAllgather(s, nil, nil, datatype.Byte) }, comm.ErrTopology},
		"graph of one way": {lopsided, func(p *Planner, s *Schedule) error { return p.NeighborAlltoallw(s, nil, nil) }, comm.ErrTopology},
		"to itself only":   {more, func(p *Planner, s *Schedule) error { return p.NeighborAllgather(s, b(1), nil, datatype.Byte) }, comm.ErrTopology},
		"from itself only": {fewer, func(p *Planner, s *Schedule) error { return p.NeighborAllgather(s, nil, b(1), datatype.Byte) }, comm.ErrTopology},
		"uneven blocks":    {ring, func(p *Planner, s *Schedule) error { return p.NeighborAllgather(s, b(1), b(3), datatype.Byte) }, ErrBuffer},
		"uneven sends":     {ring, func(p *Planner, s *Schedule) error { return p.NeighborAlltoall(s, b(3), b(2), datatype.Byte) }, ErrBuffer},
		"half an element":  {ring, func(p *Planner, s *Schedule) error { return p.NeighborAlltoall(s, b(6), b(6), datatype.Int16) }, ErrBuffer},
		"overlap":          {ring, func(p *Planner, s *Schedule) error { return p.NeighborAlltoall(s, shared, shared, datatype.Byte) }, ErrBuffer},
		"bytes for nobody": {fewer, func(p *Planner, s *Schedule) error { return p.NeighborAlltoall(s, b(1), b(1), datatype.Byte) }, ErrBuffer},
		"too few counts": {ring, func(p *Planner, s *Schedule) error {
			return p.NeighborAllgatherv(s, b(1), b(2), []int{2}, nil, datatype.Byte)
		}, ErrCount},
		"negative count": {ring, func(p *Planner, s *Schedule) error {
			return p.NeighborAllgatherv(s, b(1), b(2), []int{-1, 1}, nil, datatype.Byte)
		}, ErrCount},
		"too few pieces":    {ring, func(p *Planner, s *Schedule) error { return p.NeighborAlltoallw(s, make([]Piece, 2), nil) }, ErrCount},
		"pieces of no kind": {ring, func(p *Planner, s *Schedule) error { return p.NeighborAlltoallw(s, make([]Piece, 2), make([]Piece, 2)) }, datatype.ErrKind},
		"beyond the end": {ring, func(p *Planner, s *Schedule) error {
			return p.NeighborAlltoallv(s, b(2), []int{1, 1}, []int{0, 2}, b(2), []int{1, 1}, nil, datatype.Byte)
		}, ErrBuffer},
	} {
		j := newJob(t, make([]wire.ClientRank, 3), Profile{}, nil, 1)
		j.connect(sameFor(3, c.topology))
		if err := c.plan(j.planners[0], &j.scheds[0]); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	j := newInterJob(t, make([]wire.ClientRank, 3), 1, Profile{}, nil, 1)
	if _, err := j.planners[0].Neighbors(); !errors.Is(err, comm.ErrComm) {
		t.Errorf("intercommunicator: %v", err)
	}
}
