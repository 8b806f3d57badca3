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

// betweenGroups runs f for pairs of groups over random clients, of ours and of
// others, with buffered and with synchronous sends. f gets the sizes.
func betweenGroups(t *testing.T, f func(t *testing.T, j *job, sizes [2]int)) {
	for _, sizes := range [][2]int{{1, 1}, {1, 4}, {3, 2}, {5, 5}, {7, 3}, {2, 18}} {
		t.Run(fmt.Sprint(sizes), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(sizes[0]), uint64(sizes[1])))
			for i := range 6 {
				clients := make([]wire.ClientRank, sizes[0]+sizes[1])
				for r := range clients {
					clients[r] = wire.ClientRank(rng.IntN(1 + i))
				}
				profile := Profile{XSize: 24, MaxLinear: rng.IntN(6), AllImpi: i%2 == 0}
				if rng.IntN(2) == 0 {
					profile.Tuning = Tuning{-1, -1, -1, -1, -1, -1, 100, -1, 64, rng.IntN(9) - 1, rng.IntN(100) - 1, rng.IntN(12) - 1, rng.IntN(200) - 1, rng.IntN(100) - 1}
				}
				j := newInterJob(t, clients, sizes[0], profile, mixedReps, uint64(i))
				for _, j.sync = range []bool{false, true} {
					f(t, j, sizes)
				}
				if t.Failed() {
					t.Fatalf("clients %v, profile %+v", clients, profile)
				}
			}
		})
	}
}

// side returns a member's group and rank.
func (j *job) side(i int) (side, rank int) {
	if i >= j.left {
		return 1, i - j.left
	}
	return 0, i
}

// rooted runs an operation from or to each member. each is told the root argument
// of a member; group is the root's.
func (j *job) rooted(sizes [2]int, f func(group, root int, argument func(i int) int)) {
	for group := range 2 {
		root := j.rng.IntN(sizes[group])
		f(group, root, func(i int) int {
			side, rank := j.side(i)
			switch {
			case side != group:
				return root
			case rank == root:
				return Root
			}
			return ProcNull
		})
	}
}

func TestInterBarrier(t *testing.T) {
	betweenGroups(t, func(t *testing.T, j *job, _ [2]int) {
		j.run(func(_ int, p *Planner, s *Schedule) error { return p.Barrier(s) })
	})
}

// TestInterBarrierHolds stops one member: nobody of the other group gets through.
func TestInterBarrierHolds(t *testing.T) {
	clients := []wire.ClientRank{0, 0, 1, 1, 0, 2}
	for late := range clients {
		j := newInterJob(t, clients, 4, Profile{MaxLinear: 4}, nil, 1)
		var sends, recvs []*message
		procs := make([]*process, len(clients))
		for i, p := range j.planners {
			procs[i] = &process{rank: i}
			if err := p.Barrier(&j.scheds[i]); err != nil {
				t.Fatal(err)
			}
		}
		for range 100 {
			for i, p := range procs {
				if i != late && !p.done {
					j.step(p, &sends, &recvs)
				}
			}
		}
		for i, p := range procs {
			if p.done && (i < 4) != (late < 4) {
				t.Errorf("member %d passed before %d arrived", i, late)
			}
		}
	}
}

func TestInterBcast(t *testing.T) {
	betweenGroups(t, func(t *testing.T, j *job, sizes [2]int) {
		j.rooted(sizes, func(group, root int, argument func(int) int) {
			n := j.size()
			bufs := make([][]int64, len(j.clients))
			j.run(func(i int, p *Planner, s *Schedule) error {
				bufs[i] = make([]int64, n)
				if argument(i) == Root {
					bufs[i] = data(7, n)
				}
				return p.Bcast(s, b64(bufs[i]), datatype.Int64, argument(i))
			})
			for i := range bufs {
				switch a := argument(i); {
				case a >= 0 || a == Root:
					equal(t, "bcast", i, bufs[i], data(7, n))
				default:
					equal(t, "bystander of bcast", i, bufs[i], make([]int64, n))
				}
			}
		})
	})
}

// blocks is the data that the members of a group contribute, by rank.
func (j *job) blocks(size, n int) (all []int64) {
	for r := range size {
		all = append(all, data(r, n)...)
	}
	return all
}

func TestInterGatherAndScatter(t *testing.T) {
	betweenGroups(t, func(t *testing.T, j *job, sizes [2]int) {
		j.rooted(sizes, func(group, root int, argument func(int) int) {
			n, others := j.size(), sizes[1-group]
			all := make([]int64, others*n)
			parts := make([][]int64, len(j.clients))
			j.run(func(i int, p *Planner, s *Schedule) error {
				_, rank := j.side(i)
				return p.Gather(s, b64(data(rank, n)), b64(all), datatype.Int64, argument(i))
			})
			equal(t, "gather", root, all, j.blocks(others, n))
			j.run(func(i int, p *Planner, s *Schedule) error {
				parts[i] = make([]int64, n)
				return p.Scatter(s, b64(all), b64(parts[i]), datatype.Int64, argument(i))
			})
			for i := range parts {
				if _, rank := j.side(i); argument(i) >= 0 {
					equal(t, "scatter", i, parts[i], data(rank, n))
				}
			}
		})
	})
}

func TestInterGathervAndScatterv(t *testing.T) {
	betweenGroups(t, func(t *testing.T, j *job, sizes [2]int) {
		j.rooted(sizes, func(group, root int, argument func(int) int) {
			counts, displs, total := j.vector(sizes[1-group])
			all := gaps(total)
			parts := make([][]int64, len(j.clients))
			count := func(i int) int {
				if _, rank := j.side(i); argument(i) >= 0 {
					return counts[rank]
				}
				return 3
			}
			j.run(func(i int, p *Planner, s *Schedule) error {
				_, rank := j.side(i)
				return p.Gatherv(s, b64(data(rank, count(i))), b64(all), counts, displs, datatype.Int64, argument(i))
			})
			equal(t, "gatherv", root, all, spread(counts, displs, total))
			j.run(func(i int, p *Planner, s *Schedule) error {
				parts[i] = make([]int64, count(i))
				return p.Scatterv(s, b64(all), counts, displs, b64(parts[i]), datatype.Int64, argument(i))
			})
			for i := range parts {
				if _, rank := j.side(i); argument(i) >= 0 {
					equal(t, "scatterv", i, parts[i], data(rank, counts[rank]))
				}
			}
		})
	})
}

// TestInterAllgather has the groups contribute blocks of different lengths.
func TestInterAllgather(t *testing.T) {
	betweenGroups(t, func(t *testing.T, j *job, sizes [2]int) {
		blocks := [2]int{j.size(), j.size()}
		recv := make([][]int64, len(j.clients))
		j.run(func(i int, p *Planner, s *Schedule) error {
			side, rank := j.side(i)
			recv[i] = make([]int64, sizes[1-side]*blocks[1-side])
			return p.Allgather(s, b64(data(rank, blocks[side])), b64(recv[i]), datatype.Int64)
		})
		for i := range recv {
			side, _ := j.side(i)
			equal(t, "allgather", i, recv[i], j.blocks(sizes[1-side], blocks[1-side]))
		}
	})
}

func TestInterAllgatherv(t *testing.T) {
	betweenGroups(t, func(t *testing.T, j *job, sizes [2]int) {
		var counts, displs [2][]int // of what the groups contribute
		var totals [2]int
		for side := range 2 {
			counts[side], displs[side], totals[side] = j.vector(sizes[side])
		}
		recv := make([][]int64, len(j.clients))
		j.run(func(i int, p *Planner, s *Schedule) error {
			side, rank := j.side(i)
			other := 1 - side
			recv[i] = gaps(totals[other])
			return p.Allgatherv(s, b64(data(rank, counts[side][rank])), b64(recv[i]), counts[other], displs[other], datatype.Int64)
		})
		for i := range recv {
			side, _ := j.side(i)
			equal(t, "allgatherv", i, recv[i], spread(counts[1-side], displs[1-side], totals[1-side]))
		}
	})
}

func TestInterAlltoall(t *testing.T) {
	betweenGroups(t, func(t *testing.T, j *job, sizes [2]int) {
		blocks := [2]int{j.size(), j.size()}
		recv := make([][]int64, len(j.clients))
		j.run(func(i int, p *Planner, s *Schedule) error {
			side, rank := j.side(i)
			recv[i] = make([]int64, sizes[1-side]*blocks[1-side])
			return p.Alltoall(s, b64(data(rank, sizes[1-side]*blocks[side])), b64(recv[i]), datatype.Int64)
		})
		for i := range recv {
			side, rank := j.side(i)
			var want []int64
			for r := range sizes[1-side] {
				n := blocks[1-side]
				want = append(want, data(r, sizes[side]*n)[rank*n:][:n]...)
			}
			equal(t, "alltoall", i, recv[i], want)
		}
	})
}

// TestInterAlltoallv sends rank(a)+rank(b) elements both ways, and as pieces of
// several kinds with Alltoallw.
func TestInterAlltoallv(t *testing.T) {
	betweenGroups(t, func(t *testing.T, j *job, sizes [2]int) {
		prepare := func(i int) (counts []int, send, recv, want []int64) {
			side, rank := j.side(i)
			for r := range sizes[1-side] {
				counts = append(counts, rank+r)
				send = append(send, data(10*rank+r, rank+r)...)
				want = append(want, data(10*r+rank, rank+r)...)
			}
			return counts, send, make([]int64, len(send)), want
		}
		recv, want := make([][]int64, len(j.clients)), make([][]int64, len(j.clients))
		j.run(func(i int, p *Planner, s *Schedule) error {
			counts, send, in, out := prepare(i)
			recv[i], want[i] = in, out
			return p.Alltoallv(s, b64(send), counts, nil, b64(in), counts, nil, datatype.Int64)
		})
		for i := range recv {
			equal(t, "alltoallv", i, recv[i], want[i])
		}
		j.run(func(i int, p *Planner, s *Schedule) error {
			counts, send, in, _ := prepare(i)
			recv[i] = in
			_, rank := j.side(i)
			return p.Alltoallw(s, pieces(send, counts, rank), pieces(in, counts, rank))
		})
		for i := range recv {
			equal(t, "alltoallw", i, recv[i], want[i])
		}
	})
}

// pieces cuts a buffer; what ranks of different parity exchange is uint64.
func pieces(buf []int64, counts []int, rank int) (out []Piece) {
	for r, n := range counts {
		k := datatype.Int64
		if (r+rank)%2 != 0 {
			k = datatype.Uint64
		}
		out = append(out, Piece{b64(buf[:n:n]), k})
		buf = buf[n:]
	}
	return out
}

func TestInterReductions(t *testing.T) {
	betweenGroups(t, func(t *testing.T, j *job, sizes [2]int) {
		for _, op := range []*datatype.Op{affine, datatype.Sum} {
			n := j.size()
			recv := make([][]uint64, len(j.clients))
			j.rooted(sizes, func(group, root int, argument func(int) int) {
				j.run(func(i int, p *Planner, s *Schedule) error {
					_, rank := j.side(i)
					recv[i] = make([]uint64, n)
					return p.Reduce(s, bu(operands(rank, n)), bu(recv[i]), datatype.Uint64, op, argument(i))
				})
				for i := range recv {
					if argument(i) == Root {
						equal(t, "reduce", i, recv[i], reduced(op, 0, sizes[1-group], n))
					}
				}
			})
			j.run(func(i int, p *Planner, s *Schedule) error {
				_, rank := j.side(i)
				recv[i] = make([]uint64, n)
				return p.Allreduce(s, bu(operands(rank, n)), bu(recv[i]), datatype.Uint64, op)
			})
			for i := range recv {
				side, _ := j.side(i)
				equal(t, "allreduce", i, recv[i], reduced(op, 0, sizes[1-side], n))
			}
		}
	})
}

// TestInterReduceScatter divides as many elements among both groups.
func TestInterReduceScatter(t *testing.T) {
	betweenGroups(t, func(t *testing.T, j *job, sizes [2]int) {
		op, each := j.op(), j.rng.IntN(4)
		total := sizes[0] * sizes[1] * each
		recv := make([][]uint64, len(j.clients))
		check := func(what string) {
			t.Helper()
			for i := range recv {
				side, rank := j.side(i)
				n := total / sizes[side]
				equal(t, what, i, recv[i], reduced(op, 0, sizes[1-side], total)[rank*n:][:n])
			}
		}
		j.run(func(i int, p *Planner, s *Schedule) error {
			side, rank := j.side(i)
			recv[i] = make([]uint64, total/sizes[side])
			return p.ReduceScatterBlock(s, bu(operands(rank, total)), bu(recv[i]), datatype.Uint64, op)
		})
		check("reduce_scatter_block")
		j.run(func(i int, p *Planner, s *Schedule) error {
			side, rank := j.side(i)
			recv[i] = make([]uint64, total/sizes[side])
			counts := make([]int, sizes[side])
			for r := range counts {
				counts[r] = total / sizes[side]
			}
			return p.ReduceScatter(s, bu(operands(rank, total)), bu(recv[i]), counts, datatype.Uint64, op)
		})
		check("reduce_scatter")
	})
}

// TestInterArguments has what is different from communicators of one group.
func TestInterArguments(t *testing.T) {
	p := newInterJob(t, []wire.ClientRank{0, 0, 1, 1, 1}, 2, usual, nil, 1).planners[0]
	var s Schedule
	b, i64, none := make([]byte, 240), datatype.Int64, []byte(nil)
	for name, c := range map[string]struct{ got, want error }{
		"root beyond the other group": {p.Bcast(&s, b, i64, 3), ErrRoot},
		"root below":                  {p.Gather(&s, b[:8], none, i64, -2), ErrRoot},
		"scan":                        {p.Scan(&s, b[:8], b[8:16], i64, datatype.Sum), comm.ErrComm},
		"exscan":                      {p.Exscan(&s, b[:8], b[8:16], i64, datatype.Sum), comm.ErrComm},
		"allgather of two blocks":     {p.Allgather(&s, b[:8], b[8:16], i64), ErrBuffer},
		"gather of two blocks":        {p.Gather(&s, none, b[:16], i64, Root), ErrBuffer},
		"scatter of two blocks":       {p.Scatter(&s, b[:16], none, i64, Root), ErrBuffer},
		"alltoall of two blocks":      {p.Alltoall(&s, b[:16], b[24:48], i64), ErrBuffer},
		"counts of the own group":     {p.Allgatherv(&s, b[:8], b[8:], []int{1, 1}, nil, i64), ErrCount},
		"allreduce in place":          {p.Allreduce(&s, nil, b[:8], i64, datatype.Sum), ErrBuffer},
		"alltoallw of two":            {p.Alltoallw(&s, make([]Piece, 2), make([]Piece, 2)), ErrCount},
		"no buffers off root":         {p.Reduce(&s, nil, nil, i64, datatype.Sum, ProcNull), nil},
	} {
		if !errors.Is(c.got, c.want) || c.want == nil && c.got != nil {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
}
