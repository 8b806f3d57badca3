package coll

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/wire"
)

// value is element i of rank r's data: distinct for all small r and i, with
// bytes that show a wrong swap.
func value(r, i int) int64 { return int64(r+1)<<40 | int64(i+1)<<8 | 0x5a }

func data(r, n int) []int64 {
	d := make([]int64, n)
	for i := range d {
		d[i] = value(r, i)
	}
	return d
}

// sizes are counts of 8-byte elements around XSIZE 24 and beyond the tuning.
func (j *job) size() int { return []int{0, 1, 2, 3, 4, 130, 300}[j.rng.IntN(7)] }

func equal[T comparable](t *testing.T, what string, rank int, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("%s: rank %d has %v, want %v", what, rank, got, want)
	}
}

func b64(s []int64) []byte { return datatype.Bytes(s) }

func TestBarrier(t *testing.T) {
	everywhere(t, func(t *testing.T, j *job) {
		j.run(func(_ int, p *Planner, s *Schedule) error { return p.Barrier(s) })
	})
}

// TestBarrierHolds stops one rank before the barrier: nobody may get through.
func TestBarrierHolds(t *testing.T) {
	for _, l := range [][]wire.ClientRank{{0, 0, 0, 0, 0}, {0, 1, 0, 2, 1}, {0, 1, 2, 3, 4, 5}} {
		for late := range l {
			j := newJob(t, l, Profile{MaxLinear: 4}, nil, 1)
			var sends, recvs []*message
			procs := make([]*process, len(l))
			for r, p := range j.planners {
				procs[r] = &process{rank: r}
				if err := p.Barrier(&j.scheds[r]); err != nil {
					t.Fatal(err)
				}
			}
			for range 100 {
				for r, p := range procs {
					if r != late && !p.done {
						j.step(p, &sends, &recvs)
					}
				}
			}
			for r, p := range procs {
				if p.done {
					t.Errorf("clients %v: rank %d passed before rank %d arrived", l, r, late)
				}
			}
		}
	}
}

func TestBcast(t *testing.T) {
	everywhere(t, func(t *testing.T, j *job) {
		for root := range j.clients {
			n := j.size()
			bufs := make([][]int64, len(j.clients))
			for r := range bufs {
				bufs[r] = make([]int64, n)
			}
			bufs[root] = data(root, n)
			j.run(func(r int, p *Planner, s *Schedule) error {
				return p.Bcast(s, b64(bufs[r]), datatype.Int64, root)
			})
			for r := range bufs {
				equal(t, "bcast", r, bufs[r], data(root, n))
			}
		}
	})
}

// TestPairs sends what has other sizes on the wire than in memory.
func TestPairs(t *testing.T) {
	type pair = datatype.Pair[float64]
	everywhere(t, func(t *testing.T, j *job) {
		n := len(j.clients)
		all := make([][]pair, n)
		want := make([]pair, n)
		for r := range all {
			all[r] = make([]pair, n)
			want[r] = pair{Value: float64(r) / 3, Index: int32(r)}
			all[r][r] = want[r]
		}
		j.run(func(r int, p *Planner, s *Schedule) error {
			return p.Allgather(s, nil, datatype.Bytes(all[r]), datatype.PairFloat64)
		})
		for r := range all {
			equal(t, "allgather of pairs", r, all[r], want)
		}
		j.run(func(r int, p *Planner, s *Schedule) error {
			return p.Allreduce(s, nil, datatype.Bytes(all[r][r:r+1]), datatype.PairFloat64, datatype.MaxLoc)
		})
		for r := range all {
			if all[r][r] != want[n-1] {
				t.Fatalf("maxloc: rank %d has %v", r, all[r][r])
			}
		}
	})
}

func TestGather(t *testing.T) {
	everywhere(t, func(t *testing.T, j *job) {
		n := len(j.clients)
		for root := range n {
			block := j.size()
			inPlace := j.rng.IntN(2) == 0
			recv := make([]int64, n*block)
			copy(recv[root*block:], data(root, block))
			j.run(func(r int, p *Planner, s *Schedule) error {
				send := b64(data(r, block))
				if r != root {
					return p.Gather(s, send, nil, datatype.Int64, root)
				}
				if inPlace {
					send = nil
				}
				return p.Gather(s, send, b64(recv), datatype.Int64, root)
			})
			var want []int64
			for r := range n {
				want = append(want, data(r, block)...)
			}
			equal(t, "gather", root, recv, want)
		}
	})
}

func TestScatter(t *testing.T) {
	everywhere(t, func(t *testing.T, j *job) {
		n := len(j.clients)
		for root := range n {
			block := j.size()
			inPlace := j.rng.IntN(2) == 0
			got := make([][]int64, n)
			send := data(50, n*block)
			j.run(func(r int, p *Planner, s *Schedule) error {
				got[r] = make([]int64, block)
				if r != root {
					return p.Scatter(s, nil, b64(got[r]), datatype.Int64, root)
				}
				if inPlace && block > 0 {
					got[r] = send[r*block:][:block]
					return p.Scatter(s, b64(send), nil, datatype.Int64, root)
				}
				return p.Scatter(s, b64(send), b64(got[r]), datatype.Int64, root)
			})
			for r := range n {
				equal(t, "scatter", r, got[r], data(50, n*block)[r*block:][:block])
			}
		}
	})
}

// vector is random counts with displacements that leave gaps and change order.
func (j *job) vector(n int) (counts, displs []int, total int) {
	counts, displs = make([]int, n), make([]int, n)
	for _, r := range j.rng.Perm(n) {
		counts[r] = j.size()
		total += j.rng.IntN(3)
		displs[r] = total
		total += counts[r]
	}
	return counts, displs, total
}

// spread is the buffer that has rank r's data at displs[r], and gap elsewhere.
func spread(counts, displs []int, total int) []int64 {
	d := make([]int64, total)
	for i := range d {
		d[i] = -7
	}
	for r, c := range counts {
		copy(d[displs[r]:], data(r, c))
	}
	return d
}

func gaps(total int) []int64 { return spread(nil, nil, total) }

func TestGatherv(t *testing.T) {
	everywhere(t, func(t *testing.T, j *job) {
		for root := range j.clients {
			counts, displs, total := j.vector(len(j.clients))
			recv := gaps(total)
			inPlace := j.rng.IntN(2) == 0
			if inPlace {
				copy(recv[displs[root]:], data(root, counts[root]))
			}
			j.run(func(r int, p *Planner, s *Schedule) error {
				send := b64(data(r, counts[r]))
				if r != root {
					return p.Gatherv(s, send, nil, nil, nil, datatype.Int64, root)
				}
				if inPlace {
					send = nil
				}
				return p.Gatherv(s, send, b64(recv), counts, displs, datatype.Int64, root)
			})
			equal(t, "gatherv", root, recv, spread(counts, displs, total))
		}
	})
}

func TestScatterv(t *testing.T) {
	everywhere(t, func(t *testing.T, j *job) {
		for root := range j.clients {
			counts, displs, total := j.vector(len(j.clients))
			got := make([][]int64, len(counts))
			j.run(func(r int, p *Planner, s *Schedule) error {
				got[r] = make([]int64, counts[r])
				if r != root {
					return p.Scatterv(s, nil, nil, nil, b64(got[r]), datatype.Int64, root)
				}
				return p.Scatterv(s, b64(spread(counts, displs, total)), counts, displs, b64(got[r]), datatype.Int64, root)
			})
			for r := range counts {
				equal(t, "scatterv", r, got[r], data(r, counts[r]))
			}
		}
	})
}

func TestAllgather(t *testing.T) {
	everywhere(t, func(t *testing.T, j *job) {
		n, block := len(j.clients), j.size()
		inPlace := j.rng.IntN(2) == 0
		recv := make([][]int64, n)
		j.run(func(r int, p *Planner, s *Schedule) error {
			recv[r] = make([]int64, n*block)
			if inPlace {
				copy(recv[r][r*block:], data(r, block))
				return p.Allgather(s, nil, b64(recv[r]), datatype.Int64)
			}
			return p.Allgather(s, b64(data(r, block)), b64(recv[r]), datatype.Int64)
		})
		var want []int64
		for r := range n {
			want = append(want, data(r, block)...)
		}
		for r := range n {
			equal(t, "allgather", r, recv[r], want)
		}
	})
}

func TestAllgatherv(t *testing.T) {
	everywhere(t, func(t *testing.T, j *job) {
		counts, displs, total := j.vector(len(j.clients))
		if j.rng.IntN(3) == 0 { // packed
			at := 0
			for r, c := range counts {
				displs[r] = at
				at += c
			}
		}
		inPlace := j.rng.IntN(2) == 0
		recv := make([][]int64, len(counts))
		j.run(func(r int, p *Planner, s *Schedule) error {
			recv[r] = gaps(total)
			if inPlace {
				copy(recv[r][displs[r]:], data(r, counts[r]))
				return p.Allgatherv(s, nil, b64(recv[r]), counts, displs, datatype.Int64)
			}
			return p.Allgatherv(s, b64(data(r, counts[r])), b64(recv[r]), counts, displs, datatype.Int64)
		})
		for r := range counts {
			equal(t, "allgatherv", r, recv[r], spread(counts, displs, total))
		}
	})
}

func TestAlltoall(t *testing.T) {
	everywhere(t, func(t *testing.T, j *job) {
		n, block := len(j.clients), j.size()
		inPlace := j.rng.IntN(2) == 0
		recv := make([][]int64, n)
		j.run(func(r int, p *Planner, s *Schedule) error {
			if inPlace {
				recv[r] = data(r, n*block)
				return p.Alltoall(s, nil, b64(recv[r]), datatype.Int64)
			}
			recv[r] = make([]int64, n*block)
			return p.Alltoall(s, b64(data(r, n*block)), b64(recv[r]), datatype.Int64)
		})
		for r := range n {
			var want []int64
			for from := range n {
				want = append(want, data(from, n*block)[r*block:][:block]...)
			}
			equal(t, "alltoall", r, recv[r], want)
		}
	})
}

func TestAlltoallv(t *testing.T) {
	everywhere(t, func(t *testing.T, j *job) {
		n := len(j.clients)
		counts := make([][]int, n) // from, to
		for r := range counts {
			for range n {
				counts[r] = append(counts[r], j.size())
			}
		}
		recv, want := make([][]int64, n), make([][]int64, n)
		j.run(func(r int, p *Planner, s *Schedule) error {
			var rcounts, sdispls []int
			total, at := 0, 0
			for from := range n {
				c := counts[from][r]
				rcounts = append(rcounts, c)
				total += c
				want[r] = append(want[r], data(from*n+r, c)...)
			}
			var send []int64
			for to, c := range counts[r] {
				send = append(send, -1)
				sdispls = append(sdispls, at+1)
				send = append(send, data(r*n+to, c)...)
				at = len(send)
			}
			recv[r] = make([]int64, total)
			return p.Alltoallv(s, b64(send), counts[r], sdispls, b64(recv[r]), rcounts, nil, datatype.Int64)
		})
		for r := range n {
			equal(t, "alltoallv", r, recv[r], want[r])
		}
	})
}

// TestSparseAlltoallv has most blocks empty, gaps between the others in both buffers, and two sets
// of ranks that exchange elements of different kinds.
func TestSparseAlltoallv(t *testing.T) {
	everywhere(t, func(t *testing.T, j *job) {
		n := len(j.clients)
		counts := make([][]int, n) // from, to
		for r := range counts {
			counts[r] = make([]int, n)
			for q := range n {
				if r%2 == q%2 && j.rng.IntN(3) == 0 {
					counts[r][q] = j.size()
				}
			}
		}
		recv, want := make([][]int64, n), make([][]int64, n)
		j.run(func(r int, p *Planner, s *Schedule) error {
			var send []int64
			sdispls, rdispls, rcounts := make([]int, n), make([]int, n), make([]int, n)
			for q := n - 1; q >= 0; q-- {
				send = append(send, -1)
				sdispls[q] = len(send)
				send = append(send, data(r*n+q, counts[r][q])...)
				rcounts[q] = counts[q][r]
				want[r] = append(want[r], -2)
				rdispls[q] = len(want[r])
				want[r] = append(want[r], data(q*n+r, rcounts[q])...)
			}
			recv[r] = make([]int64, len(want[r]))
			for i := range recv[r] {
				recv[r][i] = -2
			}
			return p.Alltoallv(s, b64(send), counts[r], sdispls, b64(recv[r]), rcounts, rdispls, []datatype.Kind{datatype.Int64, datatype.Uint64}[r%2])
		})
		for r := range n {
			equal(t, "sparse alltoallv", r, recv[r], want[r])
		}
	})
}

// TestAlltoallvInPlace swaps blocks of the lengths that both sides have.
func TestAlltoallvInPlace(t *testing.T) {
	everywhere(t, func(t *testing.T, j *job) {
		n := len(j.clients)
		recv, want := make([][]int64, n), make([][]int64, n)
		j.run(func(r int, p *Planner, s *Schedule) error {
			counts := make([]int, n)
			for q := range n {
				counts[q] = (r + q) % 4
				recv[r] = append(recv[r], data(r*n+q, counts[q])...)
				want[r] = append(want[r], data(q*n+r, counts[q])...)
			}
			return p.Alltoallv(s, nil, nil, nil, b64(recv[r]), counts, nil, datatype.Int64)
		})
		for r := range n {
			equal(t, "alltoallv in place", r, recv[r], want[r])
		}
	})
}

// affine is an operation that is associative but not commutative: elements are
// maps x -> ax+b modulo 2^32, with a in the upper half and b in the lower.
var affine = datatype.NewOp(func(in, inout []byte, n int, _ datatype.Kind) {
	f, g := datatype.View[uint64](in), datatype.View[uint64](inout)
	for i := range n {
		g[i] = compose(f[i], g[i])
	}
}, false, datatype.Uint64)

func compose(f, g uint64) uint64 {
	a, b, c, d := uint32(f>>32), uint32(f), uint32(g>>32), uint32(g)
	return uint64(a*c)<<32 | uint64(a*d+b)
}

// operands are rank r's, and reduced combines those of ranks from to before to.
func operands(r, n int) []uint64 {
	d := make([]uint64, n)
	for i := range d {
		d[i] = uint64(2*r+3)<<32 | uint64(i+7*r+1)
	}
	return d
}

func reduced(op *datatype.Op, from, to, n int) []uint64 {
	acc := operands(to-1, n)
	for r := to - 2; r >= from; r-- {
		if op == affine {
			for i, v := range operands(r, n) {
				acc[i] = compose(v, acc[i])
			}
		} else {
			for i, v := range operands(r, n) {
				acc[i] += v
			}
		}
	}
	return acc
}

func (j *job) op() *datatype.Op {
	if j.rng.IntN(2) == 0 {
		return affine
	}
	return datatype.Sum
}

func bu(s []uint64) []byte { return datatype.Bytes(s) }

func TestReduce(t *testing.T) {
	everywhere(t, func(t *testing.T, j *job) {
		n := len(j.clients)
		for root := range n {
			for _, op := range []*datatype.Op{affine, datatype.Sum} {
				count := j.size()
				inPlace := j.rng.IntN(2) == 0
				recv := make([]uint64, count)
				j.run(func(r int, p *Planner, s *Schedule) error {
					if r != root {
						return p.Reduce(s, bu(operands(r, count)), nil, datatype.Uint64, op, root)
					}
					if inPlace {
						copy(recv, operands(r, count))
						return p.Reduce(s, nil, bu(recv), datatype.Uint64, op, root)
					}
					return p.Reduce(s, bu(operands(r, count)), bu(recv), datatype.Uint64, op, root)
				})
				equal(t, "reduce "+op.String(), root, recv, reduced(op, 0, n, count))
			}
		}
	})
}

// each runs an operation that takes an operand and gives a result everywhere.
func each(j *job, count int, f func(p *Planner, s *Schedule, send, recv []byte) error) [][]uint64 {
	inPlace := j.rng.IntN(2) == 0
	recv := make([][]uint64, len(j.clients))
	j.run(func(r int, p *Planner, s *Schedule) error {
		if inPlace {
			recv[r] = operands(r, count)
			return f(p, s, nil, bu(recv[r]))
		}
		recv[r] = make([]uint64, count)
		return f(p, s, bu(operands(r, count)), bu(recv[r]))
	})
	return recv
}

func TestAllreduce(t *testing.T) {
	everywhere(t, func(t *testing.T, j *job) {
		count, op := j.size(), j.op()
		recv := each(j, count, func(p *Planner, s *Schedule, send, recv []byte) error {
			return p.Allreduce(s, send, recv, datatype.Uint64, op)
		})
		for r := range recv {
			equal(t, "allreduce "+op.String(), r, recv[r], reduced(op, 0, len(recv), count))
		}
	})
}

// drifting claims to commute but gives other bits when its operands are
// exchanged.
var drifting = datatype.NewOp(func(in, inout []byte, n int, _ datatype.Kind) {
	a, b := datatype.View[float64](in), datatype.View[float64](inout)
	for i := range n {
		b[i] = a[i] + b[i]*(1+1e-9)
	}
}, true, datatype.Float64)

// TestAllreduceSameBits sums numbers whose sum depends on the order.
func TestAllreduceSameBits(t *testing.T) {
	everywhere(t, func(t *testing.T, j *job) {
		for _, count := range []int{1, 40, 300} {
			op := []*datatype.Op{datatype.Sum, drifting}[j.rng.IntN(2)]
			recv := make([][]float64, len(j.clients))
			j.run(func(r int, p *Planner, s *Schedule) error {
				send := make([]float64, count)
				for i := range send {
					send[i] = math.Exp(80*j.rng.Float64()-40) * float64(1-2*(r%2))
				}
				if r == 2 {
					send[0] = math.NaN()
				}
				recv[r] = make([]float64, count)
				return p.Allreduce(s, datatype.Bytes(send), datatype.Bytes(recv[r]), datatype.Float64, op)
			})
			for r := range recv {
				if !bytes.Equal(datatype.Bytes(recv[r]), datatype.Bytes(recv[0])) {
					t.Fatalf("rank %d has %v, rank 0 has %v", r, recv[r], recv[0])
				}
			}
		}
	})
}

func TestScan(t *testing.T) {
	everywhere(t, func(t *testing.T, j *job) {
		count, op := j.size(), j.op()
		recv := each(j, count, func(p *Planner, s *Schedule, send, recv []byte) error {
			return p.Scan(s, send, recv, datatype.Uint64, op)
		})
		for r := range recv {
			equal(t, "scan "+op.String(), r, recv[r], reduced(op, 0, r+1, count))
		}
	})
}

func TestExscan(t *testing.T) {
	everywhere(t, func(t *testing.T, j *job) {
		count, op := j.size(), j.op()
		recv := each(j, count, func(p *Planner, s *Schedule, send, recv []byte) error {
			return p.Exscan(s, send, recv, datatype.Uint64, op)
		})
		for r := 1; r < len(recv); r++ {
			equal(t, "exscan "+op.String(), r, recv[r], reduced(op, 0, r, count))
		}
	})
}

func TestReduceScatter(t *testing.T) {
	everywhere(t, func(t *testing.T, j *job) {
		n, op := len(j.clients), j.op()
		counts, starts, total := make([]int, n), make([]int, n), 0
		for r := range n {
			counts[r], starts[r] = j.size(), total
			total += counts[r]
		}
		inPlace := j.rng.IntN(2) == 0
		recv := make([][]uint64, n)
		j.run(func(r int, p *Planner, s *Schedule) error {
			if inPlace {
				recv[r] = operands(r, total)
				return p.ReduceScatter(s, nil, bu(recv[r]), counts, datatype.Uint64, op)
			}
			recv[r] = make([]uint64, counts[r])
			return p.ReduceScatter(s, bu(operands(r, total)), bu(recv[r]), counts, datatype.Uint64, op)
		})
		for r := range n {
			equal(t, "reduce_scatter "+op.String(), r, recv[r][:counts[r]], reduced(op, 0, n, total)[starts[r]:][:counts[r]])
		}
	})
}

func TestReduceScatterBlock(t *testing.T) {
	everywhere(t, func(t *testing.T, j *job) {
		n, op, block := len(j.clients), j.op(), j.size()
		inPlace := j.rng.IntN(2) == 0
		recv := make([][]uint64, n)
		j.run(func(r int, p *Planner, s *Schedule) error {
			if inPlace {
				recv[r] = operands(r, n*block)
				return p.ReduceScatterBlock(s, nil, bu(recv[r]), datatype.Uint64, op)
			}
			recv[r] = make([]uint64, block)
			return p.ReduceScatterBlock(s, bu(operands(r, n*block)), bu(recv[r]), datatype.Uint64, op)
		})
		for r := range n {
			equal(t, "reduce_scatter_block "+op.String(), r, recv[r][:block], reduced(op, 0, n, n*block)[r*block:][:block])
		}
	})
}
