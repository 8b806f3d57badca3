package coll

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/wire"
)

// ours is the usual profile between clients that are all ours.
var ours = Profile{XSize: 1024, MaxLinear: 4, AllImpi: true, Clients: make([]Peer, 32)}

// trees is ours where clients do not exchange messages all at once.
var trees = Profile{XSize: 1024, MaxLinear: 4, AllImpi: true, Clients: make([]Peer, 32), Tuning: Tuning{Direct: -1}}

// crossings runs a plan and counts the messages that each client sends to others
// and gets from them, and the bytes it sends.
func crossings(t *testing.T, clients []wire.ClientRank, p Profile, plan func(r int, p *Planner, s *Schedule) error) (up, down map[wire.ClientRank]int, most int) {
	t.Helper()
	j := newJob(t, clients, p, nil, 9)
	j.run(plan)
	up, down = map[wire.ClientRank]int{}, map[wire.ClientRank]int{}
	size := map[wire.ClientRank]int{}
	for _, line := range j.trace {
		var from, to, tag, n int
		if _, err := fmt.Sscanf(line, "%d->%d %d %d", &from, &to, &tag, &n); err != nil {
			t.Fatal(err)
		}
		up[clients[from]]++
		down[clients[to]]++
		size[clients[from]] += n
		most = max(most, size[clients[from]])
	}
	return up, down, most
}

// sites are layouts of n clients with a few processes each, whose ranks follow
// each other or are dealt out.
func sitesOf(n int) (ordered, dealt []wire.ClientRank) {
	for i := range 4 * n {
		ordered = append(ordered, wire.ClientRank(i/4))
		dealt = append(dealt, wire.ClientRank(i%n))
	}
	return ordered, dealt
}

// TestOneUpOneDown counts what goes between clients: of each but the one that is
// the hub, or the inner ones of a tree over many, one message up and one down.
func TestOneUpOneDown(t *testing.T) {
	short := make([]byte, 64)
	plans := map[string]struct {
		up, down int // of a client that is a leaf
		plan     func(r int, p *Planner, s *Schedule) error
	}{
		"barrier":   {1, 1, barrier},
		"bcast":     {0, 1, bcast(16, 0)},
		"reduce":    {1, 0, reduction(8, 0, datatype.Sum)},
		"allreduce": {1, 1, func(_ int, p *Planner, s *Schedule) error { return allreduceOf(p, s, short, datatype.Sum) }},
	}
	for name, c := range plans {
		for _, n := range []int{2, 3, 4, 9, 16} {
			ordered, dealt := sitesOf(n)
			for _, clients := range [][]wire.ClientRank{ordered, dealt} {
				up, down, _ := crossings(t, clients, trees, c.plan)
				total := 0
				for client := range wire.ClientRank(n) {
					total += up[client]
				}
				if want := (c.up + c.down) * (n - 1); total != want {
					t.Errorf("%s over %d clients takes %d messages, want %d", name, n, total, want)
				}
				if leaf := wire.ClientRank(n - 1); n <= ours.MaxLinear && (up[leaf] != c.up || down[leaf] != c.down) {
					t.Errorf("%s over %d clients: %d up and %d down, want %d and %d", name, n, up[leaf], down[leaf], c.up, c.down)
				}
			}
		}
	}
}

// TestWaysBetweenSites counts how many messages between clients have to wait for each other, which
// is how many ways between far sites an operation takes: one, but for what is combined part by part
// or may not have other bits elsewhere.
func TestWaysBetweenSites(t *testing.T) {
	p := ours
	p.Tuning = Tuning{DirectLong: 200 << 10}
	vector := func(bytes int, op *datatype.Op, k datatype.Kind) func(int, *Planner, *Schedule) error {
		return func(_ int, p *Planner, s *Schedule) error {
			return p.Allreduce(s, nil, make([]byte, bytes), k, op)
		}
	}
	blocks := func(bytes int, alltoall bool) func(int, *Planner, *Schedule) error {
		return func(_ int, p *Planner, s *Schedule) error {
			if alltoall {
				return p.Alltoall(s, nil, make([]byte, bytes*p.n), datatype.Byte)
			}
			return p.Allgather(s, nil, make([]byte, bytes*p.n), datatype.Byte)
		}
	}
	for name, c := range map[string]struct {
		ways int
		plan func(r int, p *Planner, s *Schedule) error
	}{
		"barrier":             {1, barrier},
		"bcast":               {1, bcast(16, 3)},
		"long bcast":          {1, bcast(1<<16, 3)},
		"reduce":              {1, reduction(8, 3, datatype.Sum)},
		"long reduce":         {1, reduction(1<<14, 3, datatype.Sum)},
		"allreduce":           {1, vector(64, datatype.Sum, datatype.Float64)},
		"striped allreduce":   {1, vector(100<<10, datatype.Sum, datatype.Float64)},
		"allreduce by parts":  {2, vector(1<<20, datatype.Sum, datatype.Float64)},
		"allreduce elsewhere": {2, vector(64, datatype.Prod, datatype.Complex128)},
		"allgather":           {1, blocks(16, false)},
		"long allgather":      {1, blocks(64<<10, false)},
		"alltoall":            {1, blocks(16, true)},
		"long alltoall":       {1, blocks(2<<10, true)},
		"scan": {1, func(_ int, p *Planner, s *Schedule) error {
			return p.Scan(s, nil, make([]byte, 64), datatype.Uint64, affine)
		}},
	} {
		for _, n := range []int{3, 8, 16} {
			ordered, _ := sitesOf(n)
			j := newJob(t, ordered, p, nil, 3)
			if j.run(c.plan); j.ways != c.ways {
				t.Errorf("%s of %d sites takes %d ways between them, want %d", name, n, j.ways, c.ways)
			}
		}
	}
	beyond, _ := sitesOf(17)
	j := newJob(t, beyond, p, nil, 3)
	if j.run(barrier); j.ways < 4 {
		t.Errorf("a barrier of more sites than Direct takes %d ways, which a tree cannot", j.ways)
	}
}

func allreduceOf(p *Planner, s *Schedule, like []byte, op *datatype.Op) error {
	return p.Allreduce(s, nil, make([]byte, len(like)), datatype.Uint64, op)
}

// TestOrderedOneUpOneDown is the same for an operation that does not commute,
// where each client's ranks follow each other. Elsewhere order needs more.
func TestOrderedOneUpOneDown(t *testing.T) {
	for _, n := range []int{2, 3, 4, 9} {
		ordered, dealt := sitesOf(n)
		plan := func(_ int, p *Planner, s *Schedule) error { return allreduceOf(p, s, make([]byte, 64), affine) }
		up, down, _ := crossings(t, ordered, trees, plan)
		for client := range wire.ClientRank(n) {
			if client > 0 && n <= ours.MaxLinear && (up[client] != 1 || down[client] != 1) {
				t.Errorf("client %d of %d: %d up, %d down", client, n, up[client], down[client])
			}
		}
		if up, _, _ := crossings(t, dealt, trees, plan); up[1] < 4 {
			t.Errorf("dealt out over %d clients: %d up, which cannot keep the order", n, up[1])
		}
	}
}

// TestScanOverSites has one message from each client to the next, whatever the
// number of processes, where each client's ranks follow each other.
func TestScanOverSites(t *testing.T) {
	ordered, dealt := sitesOf(3)
	for name, plan := range map[string]func(_ int, p *Planner, s *Schedule) error{
		"scan": func(_ int, p *Planner, s *Schedule) error {
			return p.Scan(s, nil, make([]byte, 64), datatype.Uint64, affine)
		},
		"exscan": func(_ int, p *Planner, s *Schedule) error {
			return p.Exscan(s, nil, make([]byte, 64), datatype.Uint64, affine)
		},
	} {
		j := newJob(t, ordered, trees, nil, 9)
		j.run(plan)
		slices.Sort(j.trace)
		if want := []string{"3->7 200 64", "7->11 200 64"}; !slices.Equal(j.trace, want) {
			t.Errorf("%s: %q, want %q", name, j.trace, want)
		}
		j = newJob(t, dealt, trees, nil, 9)
		j.run(plan)
		if len(j.trace) != 11 {
			t.Errorf("%s of ranks dealt out: %d messages", name, len(j.trace))
		}
	}
}

// TestStripes moves long vectors: each of four processes has a part, and nobody
// sends the whole.
func TestStripes(t *testing.T) {
	const count = 1 << 14
	ordered, _ := sitesOf(3)
	largest := func(plan func(r int, p *Planner, s *Schedule) error) (n int) {
		j := newJob(t, ordered, ours, nil, 2)
		j.run(plan)
		for _, line := range j.trace {
			var size int
			if _, err := fmt.Sscan(line[strings.LastIndex(line, " ")+1:], &size); err != nil {
				t.Fatal(err)
			}
			n = max(n, size)
		}
		return n
	}
	for name, plan := range map[string]func(r int, p *Planner, s *Schedule) error{
		"bcast":  bcast(2*count, 5),
		"reduce": reduction(count, 5, datatype.Sum),
		"allreduce": func(_ int, p *Planner, s *Schedule) error {
			return allreduceOf(p, s, make([]byte, 8*count), datatype.Sum)
		},
	} {
		if n := largest(plan); n != 8*count/4 {
			t.Errorf("%s: a message of %d bytes between clients, want %d", name, n, 8*count/4)
		}
	}
	whole := datatype.NewWholeOp(func(in, inout []byte, _ int, _ datatype.Kind) { copy(inout, in) }, true)
	if n := largest(reduction(count, 5, whole)); n != 8*count {
		t.Errorf("the operands of an operation that must have them whole are cut to %d bytes", n)
	}
}

// TestTwoClientsExchange has one message each way, side by side, instead of up and
// down one after the other.
func TestTwoClientsExchange(t *testing.T) {
	ordered, _ := sitesOf(2)
	golden(t, ordered, ours, func(_ int, p *Planner, s *Schedule) error {
		return allreduceOf(p, s, make([]byte, 64), datatype.Sum)
	}, "0->4 310 64", "4->0 310 64")
	// Products of complex numbers depend on how a machine multiplies.
	golden(t, ordered, ours, func(_ int, p *Planner, s *Schedule) error {
		return p.Allreduce(s, nil, make([]byte, 64), datatype.Complex128, datatype.Prod)
	}, "0->4 120 64", "4->0 190 64")
}

// TestBlocksTogether counts messages of operations that move blocks: all that a
// client has for another goes in one message.
func TestBlocksTogether(t *testing.T) {
	const n, each = 3, 4
	for _, layout := range []int{0, 1} {
		ordered, dealt := sitesOf(n)
		clients := [][]wire.ClientRank{ordered, dealt}[layout]
		size := len(clients)
		for name, c := range map[string]struct {
			messages int
			plan     func(r int, p *Planner, s *Schedule) error
		}{
			"gather": {n - 1, func(_ int, p *Planner, s *Schedule) error {
				return p.Gather(s, make([]byte, 2000), make([]byte, 2000*size), datatype.Byte, 1)
			}},
			"gather of long blocks": {(n - 1) * each, func(_ int, p *Planner, s *Schedule) error {
				return p.Gather(s, make([]byte, 64<<10), make([]byte, 64<<10*size), datatype.Byte, 1)
			}},
			"scatter": {n - 1, func(_ int, p *Planner, s *Schedule) error {
				return p.Scatter(s, make([]byte, 2000*size), make([]byte, 2000), datatype.Byte, 1)
			}},
			"allgather": {n * (n - 1), func(_ int, p *Planner, s *Schedule) error {
				return p.Allgather(s, nil, make([]byte, 2000*size), datatype.Byte)
			}},
			"alltoall": {n * (n - 1), func(_ int, p *Planner, s *Schedule) error {
				return p.Alltoall(s, nil, make([]byte, 16*size), datatype.Byte)
			}},
			"alltoall of long blocks": {n * (n - 1) * each * each, func(_ int, p *Planner, s *Schedule) error {
				return p.Alltoall(s, nil, make([]byte, 2000*size), datatype.Byte)
			}},
			"reduce_scatter": {n * (n - 1), func(_ int, p *Planner, s *Schedule) error {
				return p.ReduceScatterBlock(s, nil, make([]byte, 16*size), datatype.Byte, datatype.BXor)
			}},
		} {
			j := newJob(t, clients, ours, nil, 4)
			j.run(c.plan)
			if len(j.trace) != c.messages {
				t.Errorf("%s: %d messages between clients, want %d", name, len(j.trace), c.messages)
			}
		}
	}
}

// TestWideModel runs long vectors, so that all stripes and segments occur, over
// random clients that are all ours.
func TestWideModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for of := range 120 {
		n := 2 + rng.IntN(20)
		equals := 2 + rng.IntN(3) // clients of one size, in each third job
		if of%3 == 0 {
			n = equals * (2 + rng.IntN(4))
		}
		clients := make([]wire.ClientRank, n)
		for i := range clients {
			clients[i] = wire.ClientRank(rng.IntN(1 + n/3))
			if of%3 == 0 {
				clients[i] = wire.ClientRank(i % equals)
			}
		}
		if rng.IntN(2) == 0 {
			slices.Sort(clients)
		}
		p := ours
		p.MaxLinear = rng.IntN(5)
		p.Tuning = Tuning{StripesLong: 1 + rng.IntN(2000), BcastLong: rng.IntN(3000), AllreduceLong: rng.IntN(3000), Direct: rng.IntN(9) - 1, DirectLong: 1 + rng.IntN(2000)}
		if rng.IntN(3) > 0 {
			p.Hosts = someHosts(n, rng)
		}
		j := newJob(t, clients, p, nil, uint64(n))
		j.sync = rng.IntN(2) == 0
		root, count := rng.IntN(n), rng.IntN(400)
		for _, op := range []*datatype.Op{datatype.Sum, affine} {
			recv := each(j, count, func(p *Planner, s *Schedule, send, recv []byte) error {
				return p.Allreduce(s, send, recv, datatype.Uint64, op)
			})
			for r := range recv {
				equal(t, fmt.Sprintf("allreduce %v over %v", op, clients), r, recv[r], reduced(op, 0, n, count))
			}
			at := make([]uint64, count)
			j.run(func(r int, p *Planner, s *Schedule) error {
				return p.Reduce(s, bu(operands(r, count)), bu(at), datatype.Uint64, op, root)
			})
			equal(t, fmt.Sprintf("reduce %v over %v", op, clients), root, at, reduced(op, 0, n, count))
			for from, plan := range []func(p *Planner, s *Schedule, send, recv []byte) error{
				func(p *Planner, s *Schedule, send, recv []byte) error {
					return p.Scan(s, send, recv, datatype.Uint64, op)
				},
				func(p *Planner, s *Schedule, send, recv []byte) error {
					return p.Exscan(s, send, recv, datatype.Uint64, op)
				},
			} {
				recv := each(j, count, plan)
				for r := from; r < n; r++ {
					equal(t, fmt.Sprintf("scan %d of %v over %v", from, op, clients), r, recv[r], reduced(op, 0, r+1-from, count))
				}
			}
		}
		bufs := make([][]int64, n)
		j.run(func(r int, p *Planner, s *Schedule) error {
			bufs[r] = make([]int64, count)
			if r == root {
				bufs[r] = data(root, count)
			}
			return p.Bcast(s, b64(bufs[r]), datatype.Int64, root)
		})
		for r := range bufs {
			equal(t, "bcast", r, bufs[r], data(root, count))
		}
		var whole []int64
		for r := range n {
			whole = append(whole, data(r, count)...)
		}
		gathered := make([][]int64, n)
		j.run(func(r int, p *Planner, s *Schedule) error {
			gathered[r] = make([]int64, n*count)
			return p.Allgather(s, b64(data(r, count)), b64(gathered[r]), datatype.Int64)
		})
		for r := range gathered {
			equal(t, "allgather", r, gathered[r], whole)
		}
	}
}

// TestWideSameBits sums in stripes what depends on the order.
func TestWideSameBits(t *testing.T) {
	for n := 2; n <= 5; n++ {
		ordered, dealt := sitesOf(n)
		for _, clients := range [][]wire.ClientRank{ordered, dealt} {
			for i, count := range []int{3, 1 << 14, 1 << 14} { // at once, in stripes, by parts
				p := ours
				p.Tuning.DirectLong = i / 2 * 1 << 10
				j := newJob(t, clients, p, nil, uint64(n))
				recv := make([][]float64, len(clients))
				j.run(func(r int, p *Planner, s *Schedule) error {
					recv[r] = make([]float64, count)
					for i := range recv[r] {
						recv[r][i] = math.Exp(80*j.rng.Float64()-40) * float64(1-2*(r%2))
					}
					return p.Allreduce(s, nil, datatype.Bytes(recv[r]), datatype.Float64, datatype.Sum)
				})
				for r := range recv {
					if !bytes.Equal(datatype.Bytes(recv[r]), datatype.Bytes(recv[0])) {
						t.Fatalf("%d elements over %v: ranks 0 and %d differ", count, clients, r)
					}
				}
			}
		}
	}
}

// TestAlltoallw has each pair exchange a kind and an amount of its own.
func TestAlltoallw(t *testing.T) {
	everywhere(t, func(t *testing.T, j *job) {
		n := len(j.clients)
		recv, want := make([][]int64, n), make([][]int64, n)
		j.run(func(r int, p *Planner, s *Schedule) error {
			var send []int64
			counts := make([]int, n)
			for q := range n {
				counts[q] = (r + q) % 5
				send = append(send, data(r*n+q, counts[q])...)
				want[r] = append(want[r], data(q*n+r, counts[q])...)
			}
			recv[r] = make([]int64, len(send))
			return p.Alltoallw(s, pieces(send, counts, r), pieces(recv[r], counts, r))
		})
		for r := range n {
			equal(t, "alltoallw", r, recv[r], want[r])
		}
	})
}

func TestAlltoallwArguments(t *testing.T) {
	p := planner(t, 1, 0, 0)
	var s Schedule
	b := make([]byte, 16)
	piece := func(n int) Piece { return Piece{b[:n], datatype.Int64} }
	for name, c := range map[string]struct{ send, recv []Piece }{
		"too few":         {[]Piece{piece(8)}, []Piece{piece(8), piece(8)}},
		"half an element": {[]Piece{piece(4), piece(8)}, []Piece{piece(8), piece(8)}},
		"no kind":         {[]Piece{{b, 0}, piece(8)}, []Piece{piece(8), piece(8)}},
		"to itself":       {[]Piece{piece(8), piece(8)}, []Piece{piece(8), piece(16)}},
	} {
		if err := p.Alltoallw(&s, c.send, c.recv); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestNumbered keeps all tags of neighbouring operations apart, and positive.
func TestNumbered(t *testing.T) {
	tags := []wire.Tag{tagBarrier, tagScan, tagLengths + inner, tagReduceScatter + inner, tagInterCheck, tagCheck + inner}
	seen := map[wire.Tag]bool{}
	for _, n := range []uint32{0, 1, 2, 77, 1<<20 - 1} {
		for _, tag := range tags {
			x := StepTag(tag, n)
			if x < 0 || seen[x] || tag >= 1<<tagBits {
				t.Errorf("tag %d of operation %d is %d", tag, n, x)
			}
			seen[x] = true
		}
	}
	if StepTag(tagScan, 1<<20) != StepTag(tagScan, 0) || StepTag(tagScan, 0) != tagScan {
		t.Error("numbers do not start again")
	}
	if slices.Max(tags) >= 1<<tagBits {
		t.Error("tags are longer than tagBits")
	}
}
