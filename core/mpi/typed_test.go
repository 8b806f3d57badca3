package mpi

import (
	"errors"
	"fmt"
	"github.com/openimpi/impi/internal/engine/proc"
	"slices"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/soak"
	"github.com/openimpi/impi/plugins/sdk/link"
)

func TestBufferBounds(t *testing.T) {
	int32s := datatype.Basic(datatype.Int32)
	back, err := datatype.Vector(3, 1, -2, int32s) // at 0, -8 and -16
	high, bad := datatype.Hindexed([]int64{1}, []int64{1 << 20}, int32s)
	if err := first(err, bad, back.Commit(), high.Commit()); err != nil {
		t.Fatal(err)
	}
	mem := make([]int32, 10)
	end := unsafe.Pointer(&mem[9])
	for _, c := range []struct {
		name string
		b    Buffer
		want mpierr.Class
	}{
		{"all of it", Typed(mem, 10, int32s), mpierr.Success},
		{"one more", Typed(mem, 11, int32s), mpierr.Buffer},
		{"of a slice", Of(mem), mpierr.Success},
		{"of nothing", Of([]float64(nil)), mpierr.Success},
		{"below the slice", Typed(mem[5:], 1, back), mpierr.Buffer},
		{"below an address", At(end, 1, back), mpierr.Success},
		{"nothing below", Typed(mem, 0, back), mpierr.Success},
		{"far above", Typed(mem, 1, high), mpierr.Buffer},
		{"an absolute address", At(nil, 1, high), mpierr.Success},
		{"null", At(nil, 1, int32s), mpierr.Buffer},
		{"null, nothing", At(nil, 0, int32s), mpierr.Success},
		{"too many to count", At(end, 1<<62, int32s), mpierr.ValueTooLarge},
		{"in place", InPlace, mpierr.Buffer},
		{"zero", Buffer{}, mpierr.Type},
	} {
		b := proc.Buffer(c.b)
		if err := b.Check(); ErrorClass(err) != c.want {
			t.Errorf("%s: %v, want class %v", c.name, err, c.want)
		}
	}
	if b := Typed(mem, 3, int32s); b.Count() != 3 || b.Datatype() != int32s {
		t.Error("the Buffer is of something else")
	}
}

// What lies in one piece travels from where it lies, whatever made the type.
func TestContiguousItemsAreMemory(t *testing.T) {
	p := layout{}.start(t)[0]
	mem := make([]int32, 12)
	triple := must(datatype.Contiguous(3, datatype.Basic(datatype.Int32)))
	tail := must(datatype.Hindexed([]int64{3}, []int64{4}, datatype.Basic(datatype.Int32)))
	if err := first(triple.Commit(), tail.Commit()); err != nil {
		t.Fatal(err)
	}
	p.Lock()
	defer p.Unlock()
	for _, c := range []struct {
		b    Buffer
		at   *int32
		size int
	}{
		{Of(mem), &mem[0], 48}, {Typed(mem, 4, triple), &mem[0], 48}, {Typed(mem, 1, tail), &mem[1], 12},
	} {
		x := p.Data.Items(message.NoPeer, proc.Buffer(c.b))
		if x.Items != nil || len(x.Mem) != c.size || unsafe.Pointer(&x.Mem[0]) != unsafe.Pointer(c.at) {
			t.Errorf("%v: %d bytes, packed %v", c.b.Datatype(), len(x.Mem), x.Items != nil)
		}
	}
	if x := p.Data.Items(message.NoPeer, proc.Buffer(Typed(apart(4, 0), 1, columns(4)))); x.Items == nil {
		t.Error("what has gaps is sent with them")
	}
}

// Strided data of all sizes over all sorts of links, expected and not.
func TestStridedOverAllLinks(t *testing.T) {
	links := map[string]layout{
		"socket":       {dataLen: 64 << 10},
		"ring":         {dataLen: 256 << 10, ackMark: 64, hiWater: 256, link: rings(512 << 10)},
		"small ring":   {dataLen: 256 << 10, ackMark: 64, hiWater: 256, link: rings(4 << 10)},
		"sleepy":       {dataLen: 256 << 10, ackMark: 64, hiWater: 256, link: rings(64 << 10), spin: "0"},
		"other sites":  {dataLen: 64 << 10, data: func(a, b int) string { return "external32" }},
		"odd packets":  {dataLen: 1001, data: func(a, b int) string { return "external32" }, link: rings(8 << 10)},
		"tiny packets": {dataLen: 3},
	}
	for name, l := range links {
		t.Run(name, func(t *testing.T) {
			l.procs = 2
			sizes := []int{0, 1, 100, 256, 257, 8000, 8193, 60_000}
			if l.dataLen < 1000 {
				sizes = sizes[:4]
			}
			l.run(t, func(t *testing.T, c *Comm) error {
				for _, n := range sizes {
					for _, late := range []bool{false, true} {
						if err := exchangeStrided(c, n, late); err != nil {
							return fmt.Errorf("%d elements, late %v: %w", n, late, err)
						}
					}
				}
				return nil
			})
		})
	}
}

func exchangeStrided(c *Comm, n int, late bool) error {
	other, v := 1-c.Rank(), columns(int64(n))
	out, in, plain := apart(max(n, 1), float64(c.Rank())), make([]float64, max(3*n-2, 0)), make([]float64, n)
	var reqs [4]Request
	post := func() (err error) {
		if reqs[0], err = c.Irecv(Typed(in, 1, v), AnySource, 1); err == nil {
			reqs[1], err = c.Irecv(Of(plain), other, 2)
		}
		return err
	}
	if !late {
		if err := post(); err != nil {
			return err
		}
	}
	var err error
	for i := range 2 {
		if reqs[2+i], err = c.Isend(Typed(out, 1, v), other, 1+i); err != nil {
			return err
		}
	}
	if late {
		if err := first(second(Sendrecv(c, []byte{1}, other, 9, []byte{0}, other, 9)), post()); err != nil {
			return err
		}
	}
	if err := Waitall(reqs[:], nil); err != nil {
		return err
	}
	if n == 0 {
		return nil
	}
	if !slices.Equal(in, apart(n, float64(other))) || !slices.Equal(plain, row(n, float64(other))) {
		return errors.New("another message")
	}
	return nil
}

// drawType draws a type and how many bytes an array of its items takes.
func drawType(t *rapid.T, depth int) *Datatype {
	if depth == 0 {
		return datatype.Basic(rapid.SampledFrom([]datatype.Kind{
			datatype.Byte, datatype.Bool, datatype.Int16, datatype.Int32, datatype.Float64, datatype.Complex64, datatype.PairInt16, datatype.PairFloat64,
		}).Draw(t, "kind"))
	}
	small := rapid.Int64Range(0, 4)
	child := drawType(t, depth-1)
	switch rapid.IntRange(0, 2).Draw(t, "constructor") {
	case 0:
		n := small.Draw(t, "length")
		return must(datatype.Vector(small.Draw(t, "count"), n, n+small.Draw(t, "gap"), child))
	case 1:
		return must(datatype.Struct([]int64{1, 2}, []int64{16 * small.Draw(t, "disp"), 64 + 3*child.UB()}, []*Datatype{child, drawType(t, depth-1)}))
	}
	return must(datatype.Resized(child, 0, child.UB()+8*small.Draw(t, "padding")))
}

// Any type arrives as it was sent, packets of any size and either representation
// between, into items of the same type, and the counts are right.
func TestRandomTypesArrive(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		typ, count := drawType(rt, rapid.IntRange(0, 3).Draw(rt, "depth")), rapid.IntRange(0, 5).Draw(rt, "items")
		l := layout{procs: 2, dataLen: rapid.Uint32Range(1, 200).Draw(rt, "packet")}
		if rapid.Bool().Draw(rt, "two sites") {
			l.data = func(int, int) string { return "external32" }
		}
		anySource := rapid.Bool().Draw(rt, "any source")
		if err := typ.Commit(); err != nil {
			rt.Fatal(err)
		}
		_, hi, err := typ.Span(count)
		if err != nil {
			rt.Fatal(err)
		}
		if overlaps(typ, count, hi) {
			rt.Skip("the bounds of a part make items overlap, into which nobody may receive")
		}
		out, in := make([]byte, hi), make([]byte, hi)
		for i := range out {
			out[i] = byte(i % 2) // a proper bool, too
		}
		l.run(t, func(t *testing.T, c *Comm) error {
			if c.Rank() == 0 {
				return c.Send(Typed(out, count, typ), 1, 1)
			}
			src := 0
			if anySource {
				src = AnySource
			}
			st, err := c.Recv(Typed(in, count, typ), src, 1)
			if err != nil {
				return err
			}
			n, err := st.Count(typ)
			want := count
			if typ.Size() == 0 {
				want = 0
			}
			return first(err, expect("count", n, want), expect("bytes", st.Bytes(), int64(count)*typ.Packed(datatype.Native)))
		})
		if !slices.Equal(stored(typ, count, in), stored(typ, count, out)) {
			rt.Fatalf("%d of %v: %v became %v", count, typ, out, in)
		}
	})
}

// overlaps reports whether items that reach up to hi have bytes in common.
func overlaps(typ *Datatype, count int, hi int64) bool {
	mem := make([]byte, hi+1)
	data := pattern(int(int64(count)*typ.Packed(datatype.Native)), 1)
	again := make([]byte, len(data))
	typ.Decode(datatype.Native, unsafe.Pointer(&mem[0]), count, 0, data, nil)
	typ.Encode(datatype.Native, again, unsafe.Pointer(&mem[0]), count, 0)
	return !slices.Equal(again, data)
}

// stored is the data of items, without the gaps: as external32, which pairs have
// no padding in.
func stored(typ *Datatype, count int, mem []byte) []byte {
	b := make([]byte, int64(count)*typ.Packed(datatype.External32))
	if len(b) > 0 {
		typ.Encode(datatype.External32, b, unsafe.Pointer(unsafe.SliceData(mem)), count, 0)
	}
	return b
}

// Messages of strided data and of Buffers cost no allocation, long or short.
func TestBuffersAllocateNothing(t *testing.T) {
	runs := soak.Size(10, 50)
	for _, rep := range []string{"native", "external32"} {
		for _, n := range []int{1, 50, 5000, 60_000} {
			procs := layout{procs: 2, data: func(int, int) string { return rep }}.start(t)
			v, mem := columns(int64(n)), make([]float64, 3*n)
			a, b := (*Comm)(procs[0].Comms.World), (*Comm)(procs[1].Comms.World)
			message := func() {
				s, err := a.Isend(Typed(mem, 1, v), 1, 0)
				if err != nil {
					t.Fatal(err)
				}
				r, err := b.Irecv(Typed(mem, 1, v), 0, 0)
				if err != nil {
					t.Fatal(err)
				}
				for done := [2]bool{}; !done[0] || !done[1]; {
					done[0], _, _ = s.Test()
					done[1], _, _ = r.Test()
				}
			}
			for range 2 * runs {
				message()
			}
			got := testing.AllocsPerRun(runs, message)
			for range 3 { // it counts the whole program, goroutines of earlier tests included
				got = min(got, testing.AllocsPerRun(runs, message))
			}
			if got != 0 {
				t.Errorf("%d elements, %s: %v allocations", n, rep, got)
			}
		}
	}
}

// Once a peer is gone, what else was waited for is complete, has failed, or is
// pending.
func TestWaitallBesideAPeerThatIsGone(t *testing.T) {
	p, ends := withStrangers(t)
	reqs, sts := make([]Request, 3), make([]Status, 3)
	reqs[0], _ = Irecv((*Comm)(p.Comms.World), make([]byte, 1), 1, 0)
	reqs[1], _ = Irecv((*Comm)(p.Comms.World), make([]byte, 1), 2, 0)
	reqs[2], _ = Irecv((*Comm)(p.Comms.World), make([]byte, 1), 0, 5)
	if err := first(Send((*Comm)(p.Comms.World), []byte{1}, 0, 5), ends[1].Close()); err != nil {
		t.Fatal(err)
	}
	err := Waitall(reqs, sts)
	if err := first(class("all", err, mpierr.InStatus), class("lost", sts[0].Err, mpierr.ProcAborted), class("other", sts[1].Err, mpierr.Pending),
		class("complete", sts[2].Err, mpierr.Success), expect("tag", sts[2].Tag, 5), expect("still active", reqs[1].Null(), false)); err != nil {
		t.Error(err)
	}
}

func TestSendrecvAllocatesNothing(t *testing.T) {
	c := (*Comm)(layout{}.start(t)[0].Comms.World)
	v, out, in := columns(100), apart(100, 1), make([]float64, 100)
	message := func() {
		if _, err := c.Sendrecv(Typed(out, 1, v), 0, 1, Of(in), 0, 1); err != nil {
			t.Fatal(err)
		}
	}
	message()
	if n := testing.AllocsPerRun(100, message); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Strided data over memory, beside as much in one piece: it is packed and
// unpacked, and not copied besides.
func BenchmarkStrided(b *testing.B) {
	for _, n := range []int{1 << 10, 8 << 10, 128 << 10} {
		mem, strided := filledFloats(2*n), must(datatype.Vector(int64(n), 1, 2, datatype.Basic(datatype.Float64)))
		if err := strided.Commit(); err != nil {
			b.Fatal(err)
		}
		for name, buf := range map[string]Buffer{"strided": Typed(mem, 1, strided), "plain": Of(mem[:n])} {
			b.Run(fmt.Sprintf("%d/%s", 8*n, name), func(b *testing.B) {
				c := ringPair(b)
				b.SetBytes(int64(8 * n))
				for b.Loop() {
					s, err := c[0].Isend(buf, 1, 0)
					if err != nil {
						b.Fatal(err)
					}
					r, err := c[1].Irecv(buf, 0, 0)
					if err != nil {
						b.Fatal(err)
					}
					for done := [2]bool{}; !done[0] || !done[1]; {
						done[0], _, _ = s.Test()
						done[1], _, _ = r.Test()
					}
				}
			})
		}
	}
}

func filledFloats(n int) []float64 {
	f := make([]float64, n)
	for i := range f {
		f[i] = 1
	}
	return f
}

// ringPair is two procs of this goroutine, joined by memory.
func ringPair(b *testing.B) (c [2]*Comm) {
	b.Helper()
	x, y := rings(512 << 10)()
	for i, l := range []link.Link{x, y} {
		p, err := twoProcs(i, l)
		if err != nil {
			b.Fatal(err)
		}
		c[i] = (*Comm)(p.Comms.World)
	}
	return c
}
