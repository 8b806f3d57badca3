package mpi

import (
	"errors"
	"fmt"
	"testing"
	"unsafe"

	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/engine/proc"
)

// record is what the mixed datatype of the tests describes: Skip and the padding
// are not part of it.
type record struct {
	Tag   int32
	Skip  int32
	Value float64
	Flag  int16
}

// cell is a number with a neighbour that is none of its business: the strided
// datatype, whose elements are all of one kind, has only X.
type cell struct{ X, Other int64 }

// made is a datatype, committed; that cannot fail in these tests.
func made(t *Datatype, err error) *Datatype {
	if err == nil {
		err = t.Commit()
	}
	if err != nil {
		panic(err)
	}
	return t
}

var (
	recordType = made(datatype.Resized(made(datatype.Struct([]int64{1, 1, 1},
		[]int64{0, int64(unsafe.Offsetof(record{}.Value)), int64(unsafe.Offsetof(record{}.Flag))},
		[]*Datatype{datatype.Basic(datatype.Int32), datatype.Basic(datatype.Float64), datatype.Basic(datatype.Int16)})),
		0, int64(unsafe.Sizeof(record{}))))
	cellType = made(datatype.Resized(datatype.Basic(datatype.Int64), 0, int64(unsafe.Sizeof(cell{}))))
)

// shape makes and compares items of one of the datatypes.
type shape struct {
	name string
	make func(n int) items
}

// items are n items in memory, all of them untouched at first.
type items struct {
	buf   func(from, n int) Buffer
	set   func(i int, v int64)
	get   func(i int) int64
	whole func() error // tells whether what is no part of the items was touched
}

var shapes = []shape{
	{"strided", func(n int) items {
		s := make([]cell, n)
		for i := range s {
			s[i] = cell{-1, 77}
		}
		return items{
			buf: func(from, n int) Buffer { return Typed(s[from:from+n], n, cellType) },
			set: func(i int, v int64) { s[i].X = v },
			get: func(i int) int64 { return s[i].X },
			whole: func() error {
				for i := range s {
					if s[i].Other != 77 {
						return fmt.Errorf("item %d: the gap was touched", i)
					}
				}
				return nil
			},
		}
	}},
	{"mixed", func(n int) items {
		s := make([]record, n)
		for i := range s {
			s[i] = record{-1, 77, -1, -1}
		}
		return items{
			buf: func(from, n int) Buffer { return Typed(s[from:from+n], n, recordType) },
			set: func(i int, v int64) { s[i] = record{int32(v), 77, float64(v) / 2, int16(v)} },
			get: func(i int) int64 {
				if v := int64(s[i].Tag); s[i].Value == float64(v)/2 && s[i].Flag == int16(v) || v == -1 {
					return v
				}
				return -99
			},
			whole: func() error {
				for i := range s {
					if s[i].Skip != 77 {
						return fmt.Errorf("item %d: the gap was touched", i)
					}
				}
				return nil
			},
		}
	}},
}

// code is the value of item i of rank r.
func code(r, i int) int64 { return int64(1000*r + i + 1) }

// filled are n items of rank r.
func (s shape) filled(r, n int) items {
	x := s.make(n)
	for i := range n {
		x.set(i, code(r, i))
	}
	return x
}

// has compares all items with wants, of which nil stays untouched.
func (x items) has(what string, n int, want func(i int) int64) error {
	for i := range n {
		if got := x.get(i); got != want(i) {
			return fmt.Errorf("%s: item %d is %d, want %d", what, i, got, want(i))
		}
	}
	if err := x.whole(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// everyShape runs body for each datatype in every layout.
func everyShape(t *testing.T, body func(c *Comm, s shape) error) {
	everyLayout(t, func(t *testing.T, c *Comm) error {
		for _, s := range shapes {
			if err := body(c, s); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
		return nil
	})
}

const typedItems = 3

func TestTypedRooted(t *testing.T) {
	everyShape(t, func(c *Comm, s shape) error {
		n, size, r := typedItems, c.Size(), c.Rank()
		for root := range size {
			b := s.make(n)
			if r == root {
				b = s.filled(root, n)
			}
			if err := first(c.Bcast(b.buf(0, n), root), b.has("Bcast", n, func(i int) int64 { return code(root, i) })); err != nil {
				return err
			}
			own, all := s.filled(r, n), s.make(n*size)
			if err := c.Gather(own.buf(0, n), all.buf(0, n*size), root); err != nil {
				return err
			}
			want := func(i int) int64 { return code(i/n, i%n) }
			if err := atRoot(c, root, all.has("Gather", n*size, want)); err != nil {
				return err
			}
			part := s.make(n)
			if err := first(c.Scatter(all.buf(0, n*size), part.buf(0, n), root),
				part.has("Scatter", n, func(i int) int64 { return code(r, i) })); err != nil {
				return err
			}
			if err := typedInPlace(c, s, root); err != nil {
				return err
			}
		}
		return nil
	})
}

// typedInPlace has the root's own block stay where it is.
func typedInPlace(c *Comm, s shape, root int) error {
	n, size, r := typedItems, c.Size(), c.Rank()
	all, own := s.make(n*size), s.filled(r, n)
	for i := range n {
		all.set(n*root+i, code(root, i))
	}
	send, part := own.buf(0, n), s.make(n)
	recv := part.buf(0, n)
	if r == root {
		send, recv = InPlace, InPlace
	}
	if err := c.Gather(send, all.buf(0, n*size), root); err != nil {
		return err
	}
	if err := atRoot(c, root, all.has("Gather in place", n*size, func(i int) int64 { return code(i/n, i%n) })); err != nil {
		return err
	}
	if err := c.Scatter(all.buf(0, n*size), recv, root); err != nil || r == root {
		return err
	}
	return part.has("Scatter in place", n, func(i int) int64 { return code(r, i) })
}

// TestTypedVectors has rank r contribute r+1 items, with one between the blocks.
func TestTypedVectors(t *testing.T) {
	everyShape(t, func(c *Comm, s shape) error {
		size, r := c.Size(), c.Rank()
		var counts, displs []int
		total := 0
		for q := range size {
			counts, displs = append(counts, q+1), append(displs, total+1)
			total += q + 2
		}
		want := func(i int) int64 {
			for q := range size {
				if i >= displs[q] && i < displs[q]+counts[q] {
					return code(q, i-displs[q])
				}
			}
			return -1
		}
		own, part := s.filled(r, r+1), s.make(r+1)
		mine := func(i int) int64 { return code(r, i) }
		for root := range size {
			all := s.make(total)
			if err := c.Gatherv(own.buf(0, r+1), all.buf(0, total), counts, displs, root); err != nil {
				return err
			}
			if err := first(atRoot(c, root, all.has("Gatherv", total, want)),
				c.Scatterv(all.buf(0, total), counts, displs, part.buf(0, r+1), root),
				part.has("Scatterv", r+1, mine)); err != nil {
				return err
			}
		}
		all := s.make(total)
		if err := first(c.Allgatherv(own.buf(0, r+1), all.buf(0, total), counts, displs), all.has("Allgatherv", total, want)); err != nil {
			return err
		}
		all = s.make(total)
		for i := range counts[r] {
			all.set(displs[r]+i, code(r, i))
		}
		if err := first(c.Allgatherv(InPlace, all.buf(0, total), counts, displs), all.has("Allgatherv in place", total, want)); err != nil {
			return err
		}
		// To rank q goes what rank q asked for: its rank and one item.
		out, in := s.make(size*(r+1)), s.make(total)
		scounts := make([]int, size)
		for q := range size {
			scounts[q] = r + 1
			for i := range r + 1 {
				out.set(q*(r+1)+i, code(r, i))
			}
		}
		return first(c.Alltoallv(out.buf(0, size*(r+1)), scounts, nil, in.buf(0, total), counts, displs), in.has("Alltoallv", total, want))
	})
}

func TestTypedRootless(t *testing.T) {
	everyShape(t, func(c *Comm, s shape) error {
		n, size, r := typedItems, c.Size(), c.Rank()
		own, all := s.filled(r, n), s.make(n*size)
		want := func(i int) int64 { return code(i/n, i%n) }
		if err := first(c.Allgather(own.buf(0, n), all.buf(0, n*size)), all.has("Allgather", n*size, want)); err != nil {
			return err
		}
		all = s.make(n * size)
		for i := range n {
			all.set(n*r+i, code(r, i))
		}
		if err := first(c.Allgather(InPlace, all.buf(0, n*size)), all.has("Allgather in place", n*size, want)); err != nil {
			return err
		}
		turned := func(i int) int64 { return code(i/n, n*r+i%n) }
		out, in := s.filled(r, n*size), s.make(n*size)
		if err := first(c.Alltoall(out.buf(0, n*size), in.buf(0, n*size)), in.has("Alltoall", n*size, turned)); err != nil {
			return err
		}
		if err := first(c.Alltoall(InPlace, out.buf(0, n*size)), out.has("Alltoall in place", n*size, turned)); err != nil {
			return err
		}
		// Alltoallw takes the blocks one by one, backwards.
		out, in = s.filled(r, n*size), s.make(n*size)
		var sends, recvs []Buffer
		for q := range size {
			sends = append(sends, out.buf(n*q, n))
			recvs = append(recvs, in.buf(n*(size-1-q), n))
		}
		back := func(i int) int64 { return code(size-1-i/n, n*r+i%n) }
		return first(c.Alltoallw(sends, recvs), in.has("Alltoallw", n*size, back))
	})
}

// TestAlltoallwDatatypes has pairs of ranks exchange different datatypes.
func TestAlltoallwDatatypes(t *testing.T) {
	everyLayout(t, func(t *testing.T, c *Comm) error {
		size, r := c.Size(), c.Rank()
		var sends, recvs []Buffer
		var in []items
		for q := range size {
			s := shapes[(r+q)%2]
			out := s.filled(r, q+1)
			x := s.make(r + 1)
			sends, recvs, in = append(sends, out.buf(0, q+1)), append(recvs, x.buf(0, r+1)), append(in, x)
		}
		if err := c.Alltoallw(sends, recvs); err != nil {
			return err
		}
		for q := range size {
			if err := in[q].has("Alltoallw", r+1, func(i int) int64 { return code(q, i) }); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestTypedNonblocking has all the non-blocking forms under way at a time.
func TestTypedNonblocking(t *testing.T) {
	everyShape(t, func(c *Comm, s shape) error {
		n, size, r := typedItems, c.Size(), c.Rank()
		counts := make([]int, size)
		for i := range counts {
			counts[i] = n
		}
		bcast := s.make(n)
		if r == 0 {
			bcast = s.filled(0, n)
		}
		own := s.filled(r, n)
		gather, gatherv, allgather, allgatherv := s.make(n*size), s.make(n*size), s.make(n*size), s.make(n*size)
		scatter, scatterv := s.make(n), s.make(n)
		out, alltoall, alltoallv := s.filled(r, n*size), s.make(n*size), s.make(n*size)
		b, whole := func(x items) Buffer { return x.buf(0, n) }, func(x items) Buffer { return x.buf(0, n*size) }
		reqs, errs := make([]Request, 10), make([]error, 10)
		reqs[0], errs[0] = c.Ibcast(b(bcast), 0)
		reqs[1], errs[1] = c.Igather(b(own), whole(gather), 0)
		reqs[2], errs[2] = c.Igatherv(b(own), whole(gatherv), counts, nil, 0)
		reqs[3], errs[3] = c.Iallgather(b(own), whole(allgather))
		reqs[4], errs[4] = c.Iallgatherv(b(own), whole(allgatherv), counts, nil)
		reqs[5], errs[5] = c.Iscatter(whole(out), b(scatter), 0)
		reqs[6], errs[6] = c.Iscatterv(whole(out), counts, nil, b(scatterv), 0)
		reqs[7], errs[7] = c.Ialltoall(whole(out), whole(alltoall))
		reqs[8], errs[8] = c.Ialltoallv(whole(out), counts, nil, whole(alltoallv), counts, nil)
		reqs[9], errs[9] = c.Ibarrier()
		if err := first(append(errs, Waitall(reqs, nil))...); err != nil {
			return err
		}
		all := func(i int) int64 { return code(i/n, i%n) }
		turned := func(i int) int64 { return code(i/n, n*r+i%n) }
		scattered := func(i int) int64 { return code(0, n*r+i) }
		return first(bcast.has("Ibcast", n, func(i int) int64 { return code(0, i) }),
			atRoot(c, 0, gather.has("Igather", n*size, all)), atRoot(c, 0, gatherv.has("Igatherv", n*size, all)),
			allgather.has("Iallgather", n*size, all), allgatherv.has("Iallgatherv", n*size, all),
			scatter.has("Iscatter", n, scattered), scatterv.has("Iscatterv", n, scattered),
			alltoall.has("Ialltoall", n*size, turned), alltoallv.has("Ialltoallv", n*size, turned))
	})
}

// The methods over plain slices do what the free functions do.
func TestBufferReductions(t *testing.T) {
	everyLayout(t, func(t *testing.T, c *Comm) error {
		const n = 40
		size, r := c.Size(), c.Rank()
		recv := make([]int64, n)
		for root := range size {
			if err := c.Reduce(Of(ints(r, n)), Of(recv), Sum, root); err != nil {
				return err
			}
			if err := atRoot(c, root, same("Reduce", recv, sums(size, n))); err != nil {
				return err
			}
		}
		if err := first(c.Allreduce(Of(ints(r, n)), Of(recv), Sum), same("Allreduce", recv, sums(size, n))); err != nil {
			return err
		}
		recv = ints(r, n)
		if err := first(c.Allreduce(InPlace, Of(recv), Sum), same("Allreduce in place", recv, sums(size, n))); err != nil {
			return err
		}
		if err := first(c.Scan(Of(ints(r, n)), Of(recv), Sum), same("Scan", recv, sums(r+1, n))); err != nil {
			return err
		}
		recv = []int64{-5}
		want := sums(r, n)[1:2]
		if r == 0 {
			want = []int64{-5}
		}
		if err := first(c.Exscan(Of(ints(r, n)[1:2]), Of(recv), Sum), same("Exscan", recv, want)); err != nil {
			return err
		}
		block := make([]int64, n)
		if err := first(c.ReduceScatterBlock(Of(ints(r, n*size)), Of(block), Sum),
			same("ReduceScatterBlock", block, sums(size, n*size)[r*n:][:n])); err != nil {
			return err
		}
		counts := make([]int, size)
		counts[size-1] = n
		part := make([]int64, counts[r])
		return first(c.ReduceScatter(Of(ints(r, n)), Of(part), counts, Sum),
			same("ReduceScatter", part, sums(size, n)[:counts[r]]))
	})
}

// affineItems composes the maps x -> (Tag*x + Value) of records in rank order, and
// finds fault with memory that is not as the datatype says.
var affineItems = NewTypeOp(func(in, inout unsafe.Pointer, n int, t *Datatype) {
	if t != recordType {
		panic("not the program's datatype")
	}
	f, g := unsafe.Slice((*record)(in), n), unsafe.Slice((*record)(inout), n)
	for i := range n {
		g[i].Value += f[i].Value * float64(g[i].Tag)
		g[i].Tag *= f[i].Tag
		g[i].Flag += f[i].Flag + 1
	}
}, false)

// TestTypedOperation reduces items of a mixed datatype that do not commute.
func TestTypedOperation(t *testing.T) {
	everyLayout(t, func(t *testing.T, c *Comm) error {
		size, r := c.Size(), c.Rank()
		make2 := func(rank, n int) []record {
			s := make([]record, n)
			for i := range s {
				s[i] = record{Tag: int32(1 + (rank+i)%2), Skip: 77, Value: float64(rank + i)}
			}
			return s
		}
		upTo := func(ranks, n int) []record {
			acc := make2(0, n)
			for q := 1; q < ranks; q++ {
				for i, g := range make2(q, n) {
					acc[i].Value = g.Value + acc[i].Value*float64(g.Tag)
					acc[i].Tag *= g.Tag
					acc[i].Flag++
				}
			}
			return acc
		}
		for _, n := range []int{1, 5, 4000} {
			if !fits(c, n) {
				continue
			}
			b := func(s []record) Buffer { return Typed(s, len(s), recordType) }
			recv := make2(9, n)
			if err := first(c.Allreduce(b(make2(r, n)), b(recv), affineItems), same("Allreduce", recv, upTo(size, n))); err != nil {
				return err
			}
			recv = make2(r, n)
			if err := first(c.Allreduce(InPlace, b(recv), affineItems), same("Allreduce in place", recv, upTo(size, n))); err != nil {
				return err
			}
			recv = make2(9, n)
			if err := c.Reduce(b(make2(r, n)), b(recv), affineItems, size-1); err != nil {
				return err
			}
			if err := atRoot(c, size-1, same("Reduce", recv, upTo(size, n))); err != nil {
				return err
			}
			if err := first(c.Scan(b(make2(r, n)), b(recv), affineItems), same("Scan", recv, upTo(r+1, n))); err != nil {
				return err
			}
			part := make2(9, n)
			if err := first(c.ReduceScatterBlock(b(make2(r, n*size)), b(part), affineItems),
				same("ReduceScatterBlock", part, upTo(size, n*size)[r*n:][:n])); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestReduceLocalItems(t *testing.T) {
	in, inout := []record{{Tag: 2, Value: 1}}, []record{{Tag: 3, Value: 5, Skip: 77}}
	if err := ReduceLocalItems(Typed(in, 1, recordType), Typed(inout, 1, recordType), affineItems); err != nil {
		t.Fatal(err)
	}
	if want := (record{Tag: 6, Value: 8, Flag: 1, Skip: 77}); inout[0] != want {
		t.Errorf("got %+v, want %+v", inout[0], want)
	}
	for what, c := range map[string]struct {
		err  error
		want mpierr.Class
	}{
		"sum of records":   {ReduceLocalItems(Typed(in, 1, recordType), Typed(inout, 1, recordType), Sum), mpierr.Op},
		"counts differ":    {ReduceLocalItems(Of([]int{1}), Of([]int{1, 2}), Sum), mpierr.Arg},
		"in place":         {ReduceLocalItems(InPlace, Of([]int{1, 2}), Sum), mpierr.Buffer},
		"datatypes differ": {ReduceLocalItems(Of([]int32{1}), Of([]float32{1}), Sum), mpierr.Arg},
	} {
		if ErrorClass(c.err) != c.want {
			t.Errorf("%s: %v of class %v", what, c.err, ErrorClass(c.err))
		}
	}
}

// TestTypedArguments has one case per argument error, each seen before anything is
// sent, and nothing is looked at where it does not matter.
func TestTypedArguments(t *testing.T) {
	uncommitted, err := datatype.Contiguous(2, datatype.Basic(datatype.Int32))
	if err != nil {
		t.Fatal(err)
	}
	everySecond := made(datatype.Vector(2, 1, 2, datatype.Basic(datatype.Int32)))
	layout{procs: 2, client: func(r int) int { return r }}.runBoth(t, func(t *testing.T, c *Comm) error {
		b := make([]int32, 16)
		x := func(from, n int) Buffer { return Of(b[from : from+n]) }
		gaps := func(from int) Buffer { return Typed(b[from:], 1, everySecond) }
		second := func(_ Request, err error) error { return err }
		for _, f := range []struct {
			name  string
			err   error
			class mpierr.Class
		}{
			{"root below", c.Bcast(x(0, 1), -1), mpierr.Root},
			{"root above", c.Gather(x(0, 1), x(1, 2), 2), mpierr.Root},
			{"non-blocking root", second(c.Iscatter(x(0, 2), x(2, 1), 7)), mpierr.Root},
			{"negative count", c.Allgather(At(unsafe.Pointer(&b[0]), -1, datatype.Basic(datatype.Int32)), x(2, 2)), mpierr.Count},
			{"no datatype", c.Allgather(Typed(b, 1, nil), x(2, 2)), mpierr.Type},
			{"uncommitted", c.Alltoall(Typed(b, 1, uncommitted), x(8, 4)), mpierr.Type},
			{"no memory", c.Allgather(At(nil, 1, datatype.Basic(datatype.Int32)), x(2, 2)), mpierr.Buffer},
			{"too little memory", c.Allgather(Typed(b[:1], 2, datatype.Basic(datatype.Int32)), x(2, 4)), mpierr.Buffer},
			{"in place twice", c.Allgather(InPlace, InPlace), mpierr.Buffer},
			{"in place for recv", c.Allreduce(x(0, 1), InPlace, Sum), mpierr.Buffer},
			{"in place in Bcast", c.Bcast(InPlace, 0), mpierr.Buffer},
			{"overlap", c.Allreduce(x(0, 4), x(3, 4), Sum), mpierr.Buffer},
			{"the same items with gaps", c.Alltoall(gaps(0), gaps(0)), mpierr.Buffer},
			{"the same buffers of Alltoallw", c.Alltoallw([]Buffer{x(0, 1), x(1, 1)}, []Buffer{x(2, 1), x(1, 1)}), mpierr.Buffer},
			{"non-blocking Alltoallw", second(c.Ialltoallw([]Buffer{gaps(0), gaps(8)}, []Buffer{gaps(0), gaps(9)})), mpierr.Buffer},
			{"blocks unequal", c.Allgather(x(0, 2), x(2, 3)), mpierr.Buffer},
			{"counts missing", c.Allgatherv(x(0, 1), x(2, 2), []int{1}, nil), mpierr.Count},
			{"count negative", c.Allgatherv(x(0, 1), x(2, 2), []int{1, -1}, nil), mpierr.Count},
			{"displacement", c.Allgatherv(x(0, 1), x(2, 2), []int{1, 1}, []int{0, 2}), mpierr.Buffer},
			{"no op", c.Allreduce(x(0, 1), x(2, 1), nil), mpierr.Op},
			{"op of the kind", c.Allreduce(x(0, 1), x(2, 1), MaxLoc), mpierr.Op},
			{"op of derived", c.Scan(InPlace, Typed(make([]cell, 2), 2, cellType), Sum), mpierr.Op},
			{"datatypes that differ", c.Alltoall(x(0, 2), Of(make([]float32, 2))), mpierr.Type},
			{"reduce_scatter counts", c.ReduceScatter(x(0, 2), x(4, 1), []int{1, -1}, Sum), mpierr.Count},
			{"alltoallw of one", c.Alltoallw([]Buffer{x(0, 1)}, []Buffer{x(1, 1)}), mpierr.Count},
			{"no communicator", (*Comm)(nil).Bcast(x(0, 1), 0), ErrorClass(proc.NoComm())},
		} {
			if ErrorClass(f.err) != f.class {
				return fmt.Errorf("%s: %v of class %v, want %v", f.name, f.err, ErrorClass(f.err), f.class)
			}
		}
		// Items with gaps may lie between others.
		if err := first(c.Alltoall(gaps(0), gaps(1)), c.Alltoallw([]Buffer{gaps(0), gaps(8)}, []Buffer{gaps(1), gaps(9)})); err != nil {
			return err
		}
		// What does not matter is not looked at.
		bad := Typed(b, -5, nil)
		recv, counts := bad, []int{-1}
		if c.Rank() == 1 {
			recv, counts = x(4, 2), []int{1, 1}
		}
		return first(c.Gather(x(0, 1), recv, 1), c.Gatherv(x(0, 1), recv, counts, nil, 1), c.Reduce(x(0, 2), recv, Sum, 1),
			c.Scatter(recv, x(8, 1), 1), c.Scatterv(recv, counts, nil, x(8, 1), 1))
	})
}

// Of a type with its elements out of order nothing is lost.
func TestTypedBackwards(t *testing.T) {
	back := made(datatype.Hindexed([]int64{1, 1}, []int64{8, 0}, datatype.Basic(datatype.Int64)))
	layout{procs: 3, client: func(r int) int { return r % 2 }}.runBoth(t, func(t *testing.T, c *Comm) error {
		b := []int64{0, 0}
		if c.Rank() == 1 {
			b = []int64{5, 6}
			return c.Bcast(Typed(b, 1, back), 1)
		}
		if err := c.Bcast(Of(b), 1); err != nil {
			return err
		}
		return same("backwards", b, []int64{6, 5})
	})
}

// Methods on plain memory allocate no more than the functions.
func TestBufferCollectivesAllocateNothing(t *testing.T) {
	procs := layout{}.start(t)
	c := (*Comm)(procs[0].Comms.World)
	in, out := make([]float64, 100), make([]float64, 100)
	var err error
	n := testing.AllocsPerRun(100, func() {
		err = first(c.Barrier(), c.Allreduce(Of(in), Of(out), Sum), c.Bcast(Of(in), 0), c.Allgather(Of(in), Of(out)))
	})
	if n > 0 || err != nil {
		t.Errorf("%v allocations, error %v", n, err)
	}
	if errors.Is(err, coll.ErrBuffer) {
		t.Error(err)
	}
}
