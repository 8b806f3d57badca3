package coll

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/wire"
)

// The layouts of the golden tests: three clients with masters 0, 2 and 6, and
// six clients with one rank each, in which ranks are master numbers.
var (
	three = []wire.ClientRank{0, 0, 1, 1, 0, 1, 2, 2}
	six   = []wire.ClientRank{5, 4, 3, 2, 1, 0}
)

// golden runs plan with external32 between all clients and compares what passed
// between clients: "from->to tag bytes", each sender's messages in its order.
func golden(t *testing.T, clients []wire.ClientRank, p Profile, plan func(r int, p *Planner, s *Schedule) error, want ...string) {
	t.Helper()
	j := newJob(t, clients, p, nil, 3)
	for _, j.sync = range []bool{false, true} {
		j.run(plan)
		slices.SortStableFunc(j.trace, func(a, b string) int {
			return cmp.Compare(strings.Split(a, "->")[0], strings.Split(b, "->")[0])
		})
		if !slices.Equal(j.trace, want) {
			t.Errorf("clients %v, synchronous %v:\n got %q\nwant %q", clients, j.sync, j.trace, want)
		}
	}
}

var usual = Profile{XSize: 1024, MaxLinear: 4}

func barrier(_ int, p *Planner, s *Schedule) error { return p.Barrier(s) }

// IMPI ch.4, Barrier.
func TestGoldenBarrierLinear(t *testing.T) {
	golden(t, three, usual, barrier,
		"0->2 110 0", "0->6 110 0", "2->0 110 0", "6->0 110 0")
}

// The tree of six is 0 over 1, 2 and 4, and 1 over 3 and 5; arrivals go from the
// farthest child, releases to the nearest first.
func TestGoldenBarrierTree(t *testing.T) {
	golden(t, six, usual, barrier,
		"0->1 110 0", "0->2 110 0", "0->4 110 0",
		"1->0 110 0", "1->3 110 0", "1->5 110 0",
		"2->0 110 0", "3->1 110 0", "4->0 110 0", "5->1 110 0")
}

// IMPI ch.4, Collective crossovers: as many clients as MAXLINEAR are linear.
func TestGoldenMaxLinear(t *testing.T) {
	star := []string{"0->1 110 0", "0->2 110 0", "0->3 110 0", "0->4 110 0", "0->5 110 0",
		"1->0 110 0", "2->0 110 0", "3->0 110 0", "4->0 110 0", "5->0 110 0"}
	golden(t, six, Profile{XSize: 1024, MaxLinear: 6}, barrier, star...)
	golden(t, six[:2], Profile{MaxLinear: 0}, barrier, "0->1 110 0", "1->0 110 0")
}

func bcast(count, root int) func(int, *Planner, *Schedule) error {
	return func(_ int, p *Planner, s *Schedule) error {
		return p.Bcast(s, make([]byte, 4*count), datatype.Int32, root)
	}
}

// IMPI ch.4, Bcast: a root that is no master stands in for its own.
func TestGoldenBcastLinear(t *testing.T) {
	golden(t, three, usual, bcast(3, 0), "0->2 120 12", "0->6 120 12")
	golden(t, three, usual, bcast(3, 3), "3->0 120 12", "3->6 120 12")
	golden(t, three, usual, bcast(0, 7), "7->0 120 0", "7->2 120 0")
	golden(t, three, usual, bcast(1000, 4), "4->2 120 4000", "4->6 120 4000") // XSIZE does not matter
}

func TestGoldenBcastTree(t *testing.T) {
	golden(t, six, usual, bcast(1, 0),
		"0->1 120 4", "0->2 120 4", "0->4 120 4", "1->3 120 4", "1->5 120 4")
	// From 4 the tree is the same over numbers counted from 4.
	golden(t, six, usual, bcast(1, 4),
		"4->5 120 4", "4->0 120 4", "4->2 120 4", "5->1 120 4", "5->3 120 4")
	// Rank 3 is local to master 1: it takes the place of its master everywhere.
	golden(t, []wire.ClientRank{0, 1, 2, 1, 3, 4}, usual, bcast(1, 3),
		"2->5 120 4", "3->2 120 4", "3->4 120 4", "3->0 120 4")
}

func reduction(count, root int, op *datatype.Op) func(int, *Planner, *Schedule) error {
	return func(_ int, p *Planner, s *Schedule) error {
		return p.Reduce(s, make([]byte, 8*count), make([]byte, 8*count), datatype.Uint64, op, root)
	}
}

// IMPI ch.4, Reduce.
func TestGoldenReduceLinear(t *testing.T) {
	golden(t, three, usual, reduction(2, 0, datatype.Sum), "2->0 190 16", "6->0 190 16")
	golden(t, three, usual, reduction(2, 5, datatype.Sum), "0->5 190 16", "6->5 190 16")
	golden(t, three, usual, reduction(0, 5, datatype.Sum), "0->5 190 0", "6->5 190 0")
}

func TestGoldenReduceTree(t *testing.T) {
	golden(t, six, usual, reduction(1, 0, datatype.Sum),
		"1->0 190 8", "2->0 190 8", "3->2 190 8", "4->0 190 8", "5->4 190 8")
	golden(t, six, usual, reduction(1, 4, datatype.Sum),
		"0->4 190 8", "1->0 190 8", "2->4 190 8", "3->2 190 8", "5->4 190 8")
	golden(t, []wire.ClientRank{0, 1, 2, 1, 3, 4}, usual, reduction(1, 3, datatype.Sum),
		"0->3 190 8", "2->3 190 8", "4->3 190 8", "5->4 190 8")
}

// Everybody sends straight to the root if the operation is not commutative.
func TestGoldenReduceOrdered(t *testing.T) {
	golden(t, three, usual, reduction(1, 3, affine),
		"0->3 190 8", "1->3 190 8", "4->3 190 8", "6->3 190 8", "7->3 190 8")
	golden(t, six, usual, reduction(1, 0, affine),
		"1->0 190 8", "2->0 190 8", "3->0 190 8", "4->0 190 8", "5->0 190 8")
}

// IMPI ch.4, Allreduce: Reduce to rank 0, Bcast from it.
func TestGoldenAllreduce(t *testing.T) {
	golden(t, three, usual, func(_ int, p *Planner, s *Schedule) error {
		return p.Allreduce(s, nil, make([]byte, 8), datatype.Uint64, datatype.Max)
	}, "0->2 120 8", "0->6 120 8", "2->0 190 8", "6->0 190 8")
}

// Reduce alone goes over the point-to-point context with a peer like LAM/MPI.
func TestGoldenReduceOnPointToPoint(t *testing.T) {
	p := usual
	p.Clients = []Peer{{Rep: datatype.External32}, {Rep: datatype.NativeLE, ReduceOnPointToPoint: true}}
	// Client 1's own processes know it of client 0, and of client 2.
	j := newJob(t, three, p, func(a, b int) Peer {
		return Peer{Rep: datatype.External32, ReduceOnPointToPoint: a == 1 || b == 1}
	}, 5)
	j.run(func(_ int, p *Planner, s *Schedule) error {
		return p.Allreduce(s, nil, make([]byte, 8), datatype.Uint64, datatype.Max)
	})
	slices.Sort(j.trace)
	want := []string{"0->2 120 8", "0->6 120 8", "2->0 190 8 p2p", "6->0 190 8"}
	if !slices.Equal(j.trace, want) {
		t.Errorf("got %q, want %q", j.trace, want)
	}
}

func gather(block, root int) func(int, *Planner, *Schedule) error {
	return func(r int, p *Planner, s *Schedule) error {
		return p.Gather(s, make([]byte, block), make([]byte, 8*block), datatype.Byte, root)
	}
}

// The profile's Gather: XSIZE itself is long.
func TestGoldenGather(t *testing.T) {
	golden(t, three, usual, gather(1023, 0), "2->0 130 3069", "6->0 130 2046")
	golden(t, three, usual, gather(1023, 4), "2->4 130 3069", "6->4 130 2046")
	golden(t, three, usual, gather(0, 3), "0->3 130 0", "6->3 130 0")
	golden(t, three, usual, gather(1024, 3),
		"0->3 130 1024", "1->3 130 1024", "4->3 130 1024", "6->3 130 1024", "7->3 130 1024")
}

func TestGoldenScatter(t *testing.T) {
	scatter := func(block, root int) func(int, *Planner, *Schedule) error {
		return func(r int, p *Planner, s *Schedule) error {
			return p.Scatter(s, make([]byte, 8*block), make([]byte, block), datatype.Byte, root)
		}
	}
	golden(t, three, usual, scatter(1023, 3), "3->0 150 3069", "3->6 150 2046")
	golden(t, three, usual, scatter(1024, 3),
		"3->0 150 1024", "3->1 150 1024", "3->4 150 1024", "3->6 150 1024", "3->7 150 1024")
}

// counts of the v-forms: client 0 (ranks 0, 1, 4) has short, long, empty; client
// 1 (2, 3, 5) long, short, short; client 2 (6, 7) empty, long.
var mixed = []int{3, 2000, 1024, 5, 0, 7, 0, 1025}

// The profile's Gatherv: each block decides for itself, empty ones do not travel,
// a master's combined message comes before its own long block.
func TestGoldenGatherv(t *testing.T) {
	gatherv := func(root int) func(int, *Planner, *Schedule) error {
		return func(r int, p *Planner, s *Schedule) error {
			return p.Gatherv(s, make([]byte, mixed[r]), make([]byte, 5000), mixed, nil, datatype.Byte, root)
		}
	}
	golden(t, three, usual, gatherv(0), "2->0 140 12", "2->0 140 1024", "7->0 140 1025")
	golden(t, three, usual, gatherv(7), "0->7 140 3", "1->7 140 2000", "2->7 140 12", "2->7 140 1024")
}

func TestGoldenScatterv(t *testing.T) {
	scatterv := func(root int) func(int, *Planner, *Schedule) error {
		return func(r int, p *Planner, s *Schedule) error {
			return p.Scatterv(s, make([]byte, 5000), mixed, nil, make([]byte, mixed[r]), datatype.Byte, root)
		}
	}
	golden(t, three, usual, scatterv(0), "0->2 160 12", "0->2 160 1024", "0->7 160 1025")
	golden(t, three, usual, scatterv(7), "7->0 160 3", "7->2 160 12", "7->1 160 2000", "7->2 160 1024")
}

// One message for each ordered pair, empty ones too.
func TestGoldenAlltoall(t *testing.T) {
	four := []wire.ClientRank{0, 1, 1, 0}
	pairs := func(tag, size int) []string {
		var out []string
		for _, p := range []string{"0->1", "0->2", "1->3", "1->0", "2->3", "2->0", "3->1", "3->2"} {
			out = append(out, fmt.Sprintf("%s %d %d", p, tag, size))
		}
		return out
	}
	for _, block := range []int{0, 3, 5000} {
		golden(t, four, usual, func(_ int, p *Planner, s *Schedule) error {
			return p.Alltoall(s, make([]byte, 4*block), make([]byte, 4*block), datatype.Byte)
		}, pairs(170, block)...)
	}
	golden(t, four, usual, func(_ int, p *Planner, s *Schedule) error {
		none := make([]int, 4)
		return p.Alltoallv(s, []byte{}, none, nil, nil, none, nil, datatype.Byte)
	}, pairs(180, 0)...)
	golden(t, four, usual, func(_ int, p *Planner, s *Schedule) error {
		none := make([]Piece, 4)
		for i := range none {
			none[i].Kind = datatype.Byte
		}
		return p.Alltoallw(s, none, none)
	}, pairs(180, 0)...)
}

// Between clients that are all ours empty blocks do not travel, in either direction.
func TestEmptyBlocksStay(t *testing.T) {
	four := []wire.ClientRank{0, 1, 1, 0}
	for name, some := range map[string]bool{"none": false, "a ring": true} {
		var want []string
		if some {
			want = []string{"0->1 180 5", "2->3 180 5"}
		}
		blocks := func(r int) (out, in []int) { // 5 bytes go to the next rank
			out, in = make([]int, 4), make([]int, 4)
			if some {
				out[(r+1)%4], in[(r+3)%4] = 5, 5
			}
			return out, in
		}
		golden(t, four, ours, func(r int, p *Planner, s *Schedule) error {
			out, in := blocks(r)
			return p.Alltoallv(s, make([]byte, 5), out, nil, make([]byte, 5), in, nil, datatype.Byte)
		}, want...)
		golden(t, four, ours, func(r int, p *Planner, s *Schedule) error {
			out, in := blocks(r)
			list := func(counts []int) (all []Piece) {
				for _, n := range counts {
					all = append(all, Piece{make([]byte, n), datatype.Byte})
				}
				return all
			}
			return p.Alltoallw(s, list(out), list(in))
		}, want...)
		if t.Failed() {
			t.Fatal(name)
		}
	}
}

// Scan goes from rank to rank; only the hops between clients are IMPI's.
func TestGoldenScan(t *testing.T) {
	want := []string{"1->2 200 8", "3->4 200 8", "4->5 200 8", "5->6 200 8"}
	golden(t, three, usual, func(_ int, p *Planner, s *Schedule) error {
		return p.Scan(s, nil, make([]byte, 8), datatype.Int64, datatype.Sum)
	}, want...)
	golden(t, three, usual, func(_ int, p *Planner, s *Schedule) error {
		return p.Exscan(s, nil, make([]byte, 8), datatype.Int64, datatype.Sum)
	}, want...)
}

// Compositions have no tags of their own.
func TestGoldenCompositions(t *testing.T) {
	golden(t, three, usual, func(_ int, p *Planner, s *Schedule) error {
		return p.Allgather(s, nil, make([]byte, 8*10), datatype.Byte)
	}, "0->2 120 80", "0->6 120 80", "2->0 130 30", "6->0 130 20")
	golden(t, three, usual, func(r int, p *Planner, s *Schedule) error {
		return p.Allgatherv(s, nil, make([]byte, 5000), mixed, nil, datatype.Byte)
	}, "0->2 120 4064", "0->6 120 4064", "2->0 140 12", "2->0 140 1024", "7->0 140 1025")
	golden(t, three, usual, func(r int, p *Planner, s *Schedule) error {
		return p.ReduceScatter(s, nil, make([]byte, 4064), mixed, datatype.Byte, datatype.BXor)
	}, "0->2 160 12", "0->2 160 1024", "0->7 160 1025", "2->0 190 4064", "6->0 190 4064")
}

// A communicator inside one client has no messages for others to see.
func TestGoldenOneClient(t *testing.T) {
	one := make([]wire.ClientRank, 9)
	golden(t, one, usual, barrier)
	golden(t, one, usual, bcast(100, 5))
	golden(t, one, usual, reduction(5, 3, affine))
}

// Go's int travels as 8 bytes and a pair as its members, whatever they take in memory.
func TestGoldenExternalSizes(t *testing.T) {
	golden(t, six[:2], usual, func(_ int, p *Planner, s *Schedule) error {
		return p.Bcast(s, make([]byte, 3*datatype.PairFloat64.Size()), datatype.PairFloat64, 0)
	}, "0->1 120 36")
	// XSIZE compares what travels: 85 pairs of 12 bytes are short, 86 are long.
	pairs := func(n int) func(int, *Planner, *Schedule) error {
		return func(_ int, p *Planner, s *Schedule) error {
			b := n * datatype.PairFloat64.Size()
			return p.Gather(s, make([]byte, b), make([]byte, 4*b), datatype.PairFloat64, 0)
		}
	}
	two := []wire.ClientRank{0, 0, 1, 1}
	golden(t, two, usual, pairs(85), "2->0 130 2040")
	golden(t, two, usual, pairs(86), "2->0 130 1032", "3->0 130 1032")
}
