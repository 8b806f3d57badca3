package mpi

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"testing"

	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/engine/proc"
)

// collLayouts are jobs of one client, of three, of six in a tree, of three
// that are other MPIs to each other, some with packets of a few bytes, and of three that
// exchange data in different forms.
var collLayouts = map[string]layout{
	"alone": {},
	"one":   {procs: 5},
	"three": {procs: 7, client: func(r int) int { return []int{0, 0, 1, 1, 0, 1, 2}[r] }},
	"tree":  {procs: 7, client: func(r int) int { return []int{5, 4, 3, 4, 2, 1, 0}[r] }, xsize: 64},
	"mixed": {procs: 6, dataLen: 64, client: func(r int) int { return r % 3 }, data: byClient, foreign: true},
	"forms": threeForms(6),
	"tiny":  {procs: 3, dataLen: 1, ackMark: 1, hiWater: 2},
}

// byClient has external32 between clients and memory inside one.
func byClient(from, to int) string {
	if from%3 == to%3 {
		return ""
	}
	return "external32"
}

func everyLayout(t *testing.T, body func(t *testing.T, c *Comm) error) {
	for name, l := range collLayouts {
		t.Run(name, func(t *testing.T) { l.run(t, body) })
	}
}

// fits says that n elements take no more packets than a test should wait for.
func fits(c *Comm, n int) bool { return n <= 50*int(c.in().Process().Job.DataLen) }

func same[T comparable](what string, got, want []T) error {
	if !slices.Equal(got, want) {
		return fmt.Errorf("%s: got %v, want %v", what, got, want)
	}
	return nil
}

// mine is what rank r contributes: n values that tell whose they are.
func mine(r, n int) []float64 {
	s := make([]float64, n)
	for i := range s {
		s[i] = float64(r) + float64(i)/1024
	}
	return s
}

func all(size, n int) (s []float64) {
	for r := range size {
		s = append(s, mine(r, n)...)
	}
	return s
}

func TestDataCollectives(t *testing.T) {
	everyLayout(t, func(t *testing.T, c *Comm) error {
		for _, n := range []int{0, 1, 7, 300} {
			if !fits(c, n) {
				continue
			}
			for root := range c.Size() {
				if err := rooted(c, n, root); err != nil {
					return fmt.Errorf("%d elements, root %d: %w", n, root, err)
				}
			}
			if err := rootless(c, n); err != nil {
				return fmt.Errorf("%d elements: %w", n, err)
			}
		}
		return nil
	})
}

func rooted(c *Comm, n, root int) error {
	size, r := c.Size(), c.Rank()
	buf := make([]float64, n)
	if r == root {
		buf = mine(root, n)
	}
	if err := first(Bcast(c, buf, root), same("Bcast", buf, mine(root, n))); err != nil {
		return err
	}
	var gathered []float64
	if r == root {
		gathered = make([]float64, size*n)
	}
	if err := Gather(c, mine(r, n), gathered, root); err != nil {
		return err
	}
	if r == root {
		if err := same("Gather", gathered, all(size, n)); err != nil {
			return err
		}
	}
	block := make([]float64, n)
	return first(Scatter(c, gathered, block, root), same("Scatter", block, mine(r, n)))
}

func rootless(c *Comm, n int) error {
	size, r := c.Size(), c.Rank()
	recv := make([]float64, size*n)
	if err := first(Allgather(c, mine(r, n), recv), same("Allgather", recv, all(size, n))); err != nil {
		return err
	}
	var want []float64
	for q := range size {
		want = append(want, mine(q, size*n)[r*n:][:n]...)
	}
	return first(Alltoall(c, mine(r, size*n), recv), same("Alltoall", recv, want))
}

// Rank r has r elements, with a gap of one before each block at the receiver.
func TestVectorCollectives(t *testing.T) {
	everyLayout(t, func(t *testing.T, c *Comm) error {
		size, r := c.Size(), c.Rank()
		var counts, displs []int
		var whole []float64
		for q := range size {
			whole = append(whole, 0)
			counts, displs = append(counts, 40*q), append(displs, len(whole))
			whole = append(whole, mine(q, 40*q)...)
		}
		for root := range size {
			recv := make([]float64, len(whole))
			if err := Gatherv(c, mine(r, counts[r]), recv, counts, displs, root); err != nil {
				return err
			}
			if r == root {
				if err := same("Gatherv", recv, whole); err != nil {
					return err
				}
			}
			block := make([]float64, counts[r])
			if err := first(Scatterv(c, recv, counts, displs, block, root), same("Scatterv", block, mine(r, counts[r]))); err != nil {
				return err
			}
		}
		recv := make([]float64, len(whole))
		if err := first(Allgatherv(c, mine(r, counts[r]), recv, counts, displs), same("Allgatherv", recv, whole)); err != nil {
			return err
		}
		var send, want []float64
		var lengths []int
		for q := range size { // r+q elements both ways
			lengths = append(lengths, r+q)
			send, want = append(send, mine(r*size+q, r+q)...), append(want, mine(q*size+r, r+q)...)
		}
		recv = make([]float64, len(want))
		return first(Alltoallv(c, send, lengths, nil, recv, lengths, nil), same("Alltoallv", recv, want))
	})
}

func TestReductions(t *testing.T) {
	everyLayout(t, func(t *testing.T, c *Comm) error {
		for _, n := range []int{1, 50, 6000} {
			if !fits(c, n) {
				continue
			}
			if err := reductions(c, n); err != nil {
				return fmt.Errorf("%d elements: %w", n, err)
			}
		}
		return nil
	})
}

// ints is rank r's operand: element i is r*i; the sum over ranks below k is known.
func ints(r, n int) []int64 {
	s := make([]int64, n)
	for i := range s {
		s[i] = int64(r * i)
	}
	return s
}

func sums(k, n int) []int64 {
	s := make([]int64, n)
	for i := range s {
		s[i] = int64(k*(k-1)/2) * int64(i)
	}
	return s
}

func reductions(c *Comm, n int) error {
	size, r := c.Size(), c.Rank()
	recv := make([]int64, n)
	for root := range size {
		if err := Reduce(c, ints(r, n), recv, Sum, root); err != nil {
			return err
		}
		if r == root {
			if err := same("Reduce", recv, sums(size, n)); err != nil {
				return err
			}
		}
	}
	if err := first(Allreduce(c, ints(r, n), recv, Sum), same("Allreduce", recv, sums(size, n))); err != nil {
		return err
	}
	recv = ints(r, n)
	if err := first(Allreduce(c, nil, recv, Sum), same("Allreduce in place", recv, sums(size, n))); err != nil {
		return err
	}
	if err := first(Scan(c, ints(r, n), recv, Sum), same("Scan", recv, sums(r+1, n))); err != nil {
		return err
	}
	if err := Exscan(c, ints(r, n), recv, Sum); err != nil {
		return err
	}
	if r > 0 {
		if err := same("Exscan", recv, sums(r, n)); err != nil {
			return err
		}
	}
	block := make([]int64, n)
	if err := first(ReduceScatterBlock(c, ints(r, n*size), block, Sum),
		same("ReduceScatterBlock", block, sums(size, n*size)[r*n:][:n])); err != nil {
		return err
	}
	counts := make([]int, size)
	counts[size-1] = n
	part := make([]int64, counts[r])
	return first(ReduceScatter(c, ints(r, n), part, counts, Sum),
		same("ReduceScatter", part, sums(size, n)[:counts[r]]))
}

// Every kind survives the way through other representations.
func TestReduceKinds(t *testing.T) {
	everyLayout(t, func(t *testing.T, c *Comm) error {
		n := c.Size()
		sum := n * (n + 1) / 2
		return first(
			oneKind(c, int8(c.Rank()+1), int8(sum), Sum), oneKind(c, int16(c.Rank()+1), int16(sum), Sum),
			oneKind(c, int32(c.Rank()+1), int32(n), Max), oneKind(c, c.Rank()+1, 1, Min),
			oneKind(c, uint8(c.Rank()+1), uint8(sum), Sum), oneKind(c, uint16(c.Rank()+1), uint16(sum), Sum),
			oneKind(c, uint32(1), 1, BAnd), oneKind(c, uint64(c.Rank()+1), uint64(sum), Sum), oneKind(c, uint(c.Rank()+1), uint(sum), Sum),
			oneKind(c, float32(c.Rank()+1), float32(sum), Sum), oneKind(c, float64(c.Rank()+1), float64(sum), Sum),
			oneKind(c, complex64(complex(1, -1)), complex(float32(n), float32(-n)), Sum),
			oneKind(c, complex(0, float64(c.Rank()+1)), complex(0, float64(sum)), Sum),
			oneKind(c, c.Rank() > 0, n > 1, LOr),
			oneKind(c, Pair[float64]{Value: math.Abs(float64(c.Rank()) - 1), Index: int32(c.Rank())}, least(n), MinLoc),
		)
	})
}

// least is the smallest of |r-1| and where it is.
func least(n int) Pair[float64] {
	if n == 1 {
		return Pair[float64]{Value: 1}
	}
	return Pair[float64]{Index: 1}
}

func oneKind[T interface {
	comparable
	Type
}](c *Comm, v, want T, op Op) error {
	got := []T{v}
	return first(Allreduce(c, nil, got, op), same(fmt.Sprintf("%v of %T", op, v), got, []T{want}))
}

// A user's operation that depends on the order is applied in rank order.
func TestUserDefinedOp(t *testing.T) {
	last := NewOp(func(in, inout []int32) {
		for i := range in {
			inout[i] = in[i]*10 + inout[i]%10 // digits of the ranks, as far as they fit
		}
	}, false)
	concat := NewOp(func(in, inout []complex128) { // lengths and digits of numbers to join
		for i, a := range in {
			b := inout[i]
			inout[i] = complex(real(a)*math.Pow(10, imag(b))+real(b), imag(a)+imag(b))
		}
	}, false)
	everyLayout(t, func(t *testing.T, c *Comm) error {
		if last.Commutative() || !Sum.Commutative() {
			return errors.New("who commutes")
		}
		want := 0.0
		for r := range c.Size() {
			want = want*10 + float64(r+1)
		}
		got := []complex128{complex(float64(c.Rank()+1), 1)}
		if err := first(Allreduce(c, nil, got, concat), expect("joined", real(got[0]), want)); err != nil {
			return err
		}
		err := Allreduce(c, nil, []int64{1}, last)
		if !errors.Is(err, datatype.ErrOp) || ErrorClass(err) != mpierr.Op {
			return fmt.Errorf("an operation of int32 over int64: %v", err)
		}
		return nil
	})
}

// Pairs (a, b) stand for the functions x -> a*x+b: composing them is associative
// and does not commute. Every reduction composes in rank order.
func TestUserDefinedOpInEveryReduction(t *testing.T) {
	compose := NewOp(func(in, inout []complex128) {
		for i, f := range in {
			g := inout[i]
			inout[i] = complex(real(f)*real(g), real(f)*imag(g)+imag(f))
		}
	}, false)
	gcd := NewOp(func(in, inout []int32) {
		for i, a := range in {
			for b := inout[i]; b != 0; a, b = b, a%b {
				inout[i] = b
			}
		}
	}, true)
	everyLayout(t, func(t *testing.T, c *Comm) error {
		size, r := c.Size(), c.Rank()
		mine := func(rank int) []complex128 {
			s := make([]complex128, size)
			for i := range s {
				s[i] = complex(float64(rank%2+1), float64(rank+i))
			}
			return s
		}
		upTo := func(n int) []complex128 { // the composition of ranks below n
			s := mine(n - 1)
			for q := n - 2; q >= 0; q-- {
				for i, f := range mine(q) {
					s[i] = complex(real(f)*real(s[i]), real(f)*imag(s[i])+imag(f))
				}
			}
			return s
		}
		recv := make([]complex128, size)
		for root := range size {
			if err := Reduce(c, mine(r), recv, compose, root); err != nil {
				return err
			}
			if r == root {
				if err := same("Reduce", recv, upTo(size)); err != nil {
					return err
				}
			}
		}
		if err := first(Scan(c, mine(r), recv, compose), same("Scan", recv, upTo(r+1))); err != nil {
			return err
		}
		if err := Exscan(c, mine(r), recv, compose); err != nil {
			return err
		}
		if r > 0 {
			if err := same("Exscan", recv, upTo(r)); err != nil {
				return err
			}
		}
		block := make([]complex128, 1)
		if err := first(ReduceScatterBlock(c, mine(r), block, compose), same("ReduceScatterBlock", block, upTo(size)[r:r+1])); err != nil {
			return err
		}
		counts := make([]int, size)
		counts[0] = size
		part := make([]complex128, counts[r])
		if err := first(ReduceScatter(c, mine(r), part, counts, compose), same("ReduceScatter", part, upTo(size)[:counts[r]])); err != nil {
			return err
		}
		divisor := []int32{int32(6 * (r + 1))}
		return first(Allreduce(c, nil, divisor, gcd), expect("gcd", divisor[0], 6))
	})
}

func TestReduceLocal(t *testing.T) {
	inout := []int{1, 2}
	if err := first(ReduceLocal([]int{10, 20}, inout, Sum), same("sum", inout, []int{11, 22})); err != nil {
		t.Error(err)
	}
	if err := ReduceLocal([]int{1}, inout, nil); !errors.Is(err, datatype.ErrOp) {
		t.Error(err)
	}
	if err := ReduceLocal([]int{1, 2, 3}, inout, Sum); !errors.Is(err, datatype.ErrBuffer) {
		t.Error(err)
	}
}

// Faults that everybody sees leave the communicator as it was.
func TestCollectiveArguments(t *testing.T) {
	layout{procs: 3, client: func(r int) int { return r % 2 }}.runBoth(t, func(t *testing.T, c *Comm) error {
		b := make([]int32, 12)
		for _, f := range []struct {
			name  string
			err   error
			want  error
			class mpierr.Class
		}{
			{"root", Bcast(c, b, 3), coll.ErrRoot, mpierr.Root},
			{"op", Allreduce(c, nil, b, MaxLoc), datatype.ErrOp, mpierr.Op},
			{"counts", Allgatherv(c, b[:1], b[1:], []int{1}, nil), coll.ErrCount, mpierr.Count},
			{"overlap", Alltoall(c, b[:6], b[3:9]), coll.ErrBuffer, mpierr.Buffer},
			{"no communicator", Barrier(nil), ErrNotInitialized, mpierr.Other},
		} {
			if !errors.Is(f.err, f.want) || ErrorClass(f.err) != f.class {
				return fmt.Errorf("%s: %v of class %v, want %v", f.name, f.err, ErrorClass(f.err), f.want)
			}
		}
		return Barrier(c)
	})
}

// A member that sends more or less than the others expect is found out.
func TestCollectiveLengths(t *testing.T) {
	for _, sent := range []int{2, 6} {
		procs := layout{procs: 2}.start(t)
		done := make(chan error)
		go func() { done <- Bcast((*Comm)(procs[0].Comms.World), make([]int32, sent), 0) }()
		err := Bcast((*Comm)(procs[1].Comms.World), make([]int32, 4), 0)
		if class := ErrorClass(err); class != mpierr.Count && class != mpierr.Truncate {
			t.Errorf("%d elements sent, 4 expected: %v", sent, err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// A peer that dies in a collective ends it everywhere.
func TestCollectivePeerDies(t *testing.T) {
	procs := layout{procs: 3}.start(t)
	done := make(chan error)
	for _, p := range procs[:2] {
		go func() { done <- Barrier((*Comm)(p.Comms.World)) }()
	}
	p := procs[2]
	p.Lock()
	p.Endpoints.Close()
	p.Unlock()
	for range 2 {
		if err := <-done; err == nil {
			t.Error("the barrier was passed without the third")
		}
	}
}

func TestCollectivesAllocateNothing(t *testing.T) {
	procs := layout{procs: 2}.start(t)
	round := func(c *Comm, in, out []float64) error {
		return first(Barrier(c), Allreduce(c, in, out, Sum), Bcast(c, in, 0))
	}
	const rounds = 230
	done := make(chan error)
	go func() {
		in, out := make([]float64, 100), make([]float64, 100)
		for range rounds {
			if err := round((*Comm)(procs[1].Comms.World), in, out); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	in, out := make([]float64, 100), make([]float64, 100)
	var err error
	for range rounds - 201 {
		err = round((*Comm)(procs[0].Comms.World), in, out)
	}
	if n := testing.AllocsPerRun(200, func() { err = first(err, round((*Comm)(procs[0].Comms.World), in, out)) }); n > 0 {
		t.Errorf("%v allocations for a barrier, an allreduce and a broadcast", n)
	}
	if err := first(err, <-done); err != nil {
		t.Error(err)
	}
}

// Collectives and messages of users do not see each other, nor do communicators.
func TestDup(t *testing.T) {
	layout{procs: 4, client: func(r int) int { return r % 2 }}.runBoth(t, func(t *testing.T, c *Comm) error {
		d, err := c.Dup()
		if err != nil {
			return err
		}
		if d.Context() == c.Context() || d.Comm.Compare(c.Comm) != comm.Congruent || d.Name() != "" {
			return fmt.Errorf("context %d, %v, name %q", d.Context(), d.Comm.Compare(c.Comm), d.Name())
		}
		next, before := (c.Rank()+1)%4, (c.Rank()+3)%4
		// The message of c comes first and must not be what d receives.
		if err := first(Send(c, []int{1}, next, 5), Send(d, []int{2}, next, 5), Barrier(d)); err != nil {
			return err
		}
		got := []int{0}
		if _, err := Recv(d, got, AnySource, AnyTag); err != nil || got[0] != 2 {
			return fmt.Errorf("got %v, %v", got, err)
		}
		_, err = Recv(c, got, before, AnyTag)
		return first(err, expect("first communicator", got[0], 1))
	})
}

func TestSplit(t *testing.T) {
	layout{procs: 6, client: func(r int) int { return r / 2 }}.runBoth(t, func(t *testing.T, c *Comm) error {
		color := c.Rank() % 2
		if c.Rank() == 5 {
			color = Undefined
		}
		d, err := c.Split(color, -c.Rank()) // backwards
		if err != nil {
			return err
		}
		if c.Rank() == 5 {
			if d != nil {
				return errors.New("a communicator without a colour")
			}
			return nil
		}
		sizes := []int{3, 2}
		ranks := make([]int, d.Size())
		if err := Allgather(d, []int{c.Rank()}, ranks); err != nil {
			return err
		}
		want := [][]int{{4, 2, 0}, {3, 1}}[color]
		return first(expect("size", d.Size(), sizes[color]), same("members", ranks, want))
	})
	layout{}.runBoth(t, func(t *testing.T, c *Comm) error {
		tooMuch := int64(1) << 40 // more than travels
		for _, color := range []int{-1, -5, int(tooMuch)} {
			if color == 0 {
				continue // an int has 32 bits here
			}
			if _, err := c.Split(color, 0); !errors.Is(err, ErrArg) {
				return fmt.Errorf("colour %d: %v", color, err)
			}
		}
		_, err := c.Split(0, int(tooMuch))
		if int64(int(tooMuch)) == tooMuch && !errors.Is(err, ErrArg) {
			return err
		}
		return nil
	})
}

func TestClassOfEachSentinel(t *testing.T) {
	for _, r := range proc.Classes {
		if got := ErrorClass(proc.Failed("X", r.Err)); got != r.Class {
			t.Errorf("%v has class %v, want %v", r.Err, got, r.Class)
		}
	}
	if ErrorClass(nil) != mpierr.Success || ErrorClass(proc.Failed("X", message.ErrTruncate)) != mpierr.Truncate || ErrorClass(io.EOF) != mpierr.Other {
		t.Error("no error, one of a package below, or one that nobody knows")
	}
}
