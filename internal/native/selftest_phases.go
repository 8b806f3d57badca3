package native

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// The phases by their numbers.
const (
	phaseBarrier = 1 + iota
	phaseBcast
	phaseReduce
	phaseAllreduce
	phaseGather
	phaseAllgather
	phaseAlltoall
)

// longVector is how many elements a long vector has: no number of members divides it.
const longVector = 20011

// repeats is how often a phase is repeated, to see that its resources are released; shortOps is the
// first number of those that the shim does by messages, as SHORT_OPS in shim.c.
const (
	repeats  = 100
	shortOps = 1 << 24
)

// typeInt32 is the number of an int of 32 bits in shim.h; the number of the sum is 0.
const typeInt32 = 5

// phases does each collective phase once in a communicator of all processes, and checks what comes
// of it. Nothing else may be under way, since who opens a communicator makes no progress for
// others.
func (t *tester) phases(l *Library) error {
	n := l.Size
	everybody := make([]int32, n)
	for i := range everybody {
		everybody[i] = int32(i)
	}
	c, err := l.Open(everybody, 1)
	if err != nil {
		return err
	}
	// Rank r sends 100*r + i to rank i.
	given := func(r, i int) int32 { return int32(100*r + i) }
	column := func(i int) (all []int32) {
		for r := range n {
			all = append(all, given(r, i))
		}
		return all
	}
	sum := int32(0)
	for _, x := range column(0) {
		sum += x
	}
	own, row := words(given(t.rank, 0)), []int32(nil)
	for i := range n {
		row = append(row, given(t.rank, i))
	}
	one, all := make([]byte, 4), make([]byte, 4*n)
	var vector, sums []int32 // a long one, each element one more than the one before
	for i := range int32(longVector) {
		vector, sums = append(vector, given(t.rank, 0)+i), append(sums, sum+int32(n)*i)
	}
	last := n - 1
	atLast := func(want ...int32) []int32 { // what a root in the last place gets
		if t.rank == last {
			return want
		}
		return nil
	}
	steps := []struct {
		name string
		p    Phase
		want []int32
	}{
		{"barrier", Phase{What: phaseBarrier}, nil},
		{"bcast", Phase{What: phaseBcast, Root: last, Count: 4, Out: slices.Clone(own)}, []int32{given(last, 0)}},
		{"reduce", Phase{What: phaseReduce, Root: last, Type: typeInt32, Count: 1, In: own, Out: one}, atLast(sum)},
		{"allreduce", Phase{What: phaseAllreduce, Type: typeInt32, Count: 1, In: own, Out: one}, []int32{sum}},
		{"allreduce of a long vector", Phase{What: phaseAllreduce, Type: typeInt32, Count: longVector, In: words(vector...), Out: make([]byte, 4*longVector)}, sums},
		{"allreduce of a long vector in place", Phase{What: phaseAllreduce, Type: typeInt32, Count: longVector, Out: words(vector...)}, sums},
		{"gather", Phase{What: phaseGather, Root: last, Count: 4, In: own, Out: all}, atLast(column(0)...)},
		{"allgather", Phase{What: phaseAllgather, Count: 4, In: own, Out: all}, column(0)},
		{"alltoall", Phase{What: phaseAlltoall, Count: 4, In: words(row...), Out: all}, column(t.rank)},
	}
	for i := range steps {
		x := &steps[i]
		if err := t.phase(c, &x.p); err != nil {
			return fmt.Errorf("%s: %w", x.name, err)
		}
		if got := x.p.Out; x.want != nil && !slices.Equal(got, words(x.want...)) {
			return fmt.Errorf("%w: %s gives rank %d % .100x, and should give % .100x", ErrFailed, x.name, t.rank, got, words(x.want...))
		}
	}
	if err := t.repeat(c, last); err != nil {
		return err
	}
	return l.CloseComm(c)
}

// repeat does phases again and again, and checks that the numbers of their requests stay small.
func (t *tester) repeat(c Comm, root int) error {
	own, sum := words(1), make([]byte, 4)
	for range repeats {
		for _, p := range []*Phase{{What: phaseBarrier}, {What: phaseReduce, Root: root, Type: typeInt32, Count: 1, In: own, Out: sum}} {
			if err := t.phase(c, p); err != nil {
				return err
			}
			if n := p.number % shortOps; n >= repeats/2 {
				return fmt.Errorf("%w: a request has the number %d although few are under way: numbers are not given back", ErrFailed, n)
			}
		}
	}
	return nil
}

func (t *tester) phase(c Comm, p *Phase) error {
	if err := t.links.Begin(c, p); err != nil {
		return err
	}
	for {
		t.links.Poll()
		if done, err := p.Done(); done || err != nil {
			return err
		}
		t.moved(0)
	}
}

func words(numbers ...int32) (b []byte) {
	for _, x := range numbers {
		b = binary.NativeEndian.AppendUint32(b, uint32(x))
	}
	return b
}
