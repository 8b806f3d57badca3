package mpi

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/core/rma"
	"github.com/openimpi/impi/internal/engine/collective"
	"github.com/openimpi/impi/internal/engine/proc"
)

// Dynamic windows have what is attached, by address; what is not gives RMA_RANGE
// to the origin, and is not touched.
func TestDynamicWindow(t *testing.T) {
	layout{procs: 2, client: func(r int) int { return r }}.run(t, func(_ *testing.T, c *Comm) error {
		w, err := c.WinCreateDynamic(nil)
		if err != nil {
			return err
		}
		mem, beside := make([]int64, 1000), make([]int64, 10)
		addrs, other := make([]int64, 2), 1-c.Rank()
		if err := errors.Join(w.Attach(Of(mem)), w.Attach(Of([]byte{})), classed("twice", w.Attach(Of(mem[5:6])), mpierr.RMAAttach),
			collective.AllgatherSlices(c.in(), []int64{Of(mem).Address()}, addrs), w.LockAll(0)); err != nil {
			return err
		}
		long, got := make([]int64, 900), []int64{0}
		long[899] = 5
		there := addrs[other]
		if err := errors.Join(Put(w, []int64{1, 2}, other, there), Put(w, long, other, there+80), w.Flush(other), Get(w, got, other, there+80+8*899), w.Flush(other),
			expect("got", got[0], 5),
			Put(w, []int64{9}, other, there+8*1000), classed("put behind it", w.Flush(other), mpierr.RMARange),
			Put(w, long, other, there+8*101), classed("long put over its end", w.Flush(other), mpierr.RMARange),
			Accumulate(w, long, other, there-8, Sum), classed("accumulate before it", w.Flush(other), mpierr.RMARange),
			Get(w, got, other, 8), classed("get of nowhere", w.FlushLocal(other), mpierr.RMARange),
			w.Flush(other)); err != nil {
			return err
		}
		heard := 0
		h, err := NewWinErrhandler(func(*Win, error) { heard++ })
		if err := errors.Join(err, w.SetErrhandler(h)); err != nil {
			return err
		}
		wrong, err := w.Rget(Of(got), elementsAt(got, other, 8))
		if err := errors.Join(err, classed("Rget", second(wrong.Wait()), mpierr.RMARange), expect("heard", heard, 1), w.UnlockAll()); err != nil {
			return err
		}
		if err := errors.Join(w.Fence(0), Put(w, []int64{9}, other, there+8*1000), classed("Fence", w.Fence(0), mpierr.RMARange), w.Fence(NoSucceed)); err != nil {
			return err
		}
		return errors.Join(expect("put", mem[1], 2), w.Detach(Of(mem)), classed("detached twice", w.Detach(Of(mem)), mpierr.RMAAttach),
			classed("never attached", w.Detach(Of(beside)), mpierr.RMAAttach), w.Free())
	})
}

// TestSharedQueryOfOthers: of a window that is not of shared memory a proc reaches its own part.
func TestSharedQueryOfOthers(t *testing.T) {
	layout{procs: 2}.run(t, func(_ *testing.T, c *Comm) error {
		mem := make([]int64, 3)
		w, err := c.WinCreate(Of(mem), 8, nil)
		if err != nil {
			return err
		}
		own, unit, err1 := w.SharedQuery(c.Rank())
		other, _, err2 := w.SharedQuery(1 - c.Rank())
		lowest, _, err3 := w.SharedQuery(ProcNull)
		if err := errors.Join(err1, err2, err3, expect("size", len(own), 24), expect("unit", unit, 8), expect("of the other", len(other), 0),
			expect("lowest", len(lowest), 24), classed("rank 2", third(w.SharedQuery(2)), mpierr.Rank)); err != nil {
			return err
		}
		mem[1] = 1 << 8
		if own[9] != 1 {
			return fmt.Errorf("the memory is %v", own)
		}
		d, err := c.WinCreateDynamic(nil)
		if err != nil {
			return err
		}
		none, _, err := d.SharedQuery(c.Rank())
		return errors.Join(err, expect("of a dynamic window", len(none), 0), d.Free(), w.Free())
	})
}

// Memory that is shared is the same for all: what one stores others load, and
// operations change it, too.
func TestSharedWindow(t *testing.T) {
	for _, apart := range []string{"false", "true"} {
		layout{procs: 3}.run(t, func(_ *testing.T, c *Comm) error {
			info := NewInfo()
			if err := info.Set("alloc_shared_noncontig", apart); err != nil {
				return err
			}
			size := int64(8 * c.Rank()) // rank 0 has nothing
			w, err := c.WinAllocateShared(size, 8, info)
			if err != nil {
				return err
			}
			mine := datatype.View[int64](w.Memory())
			for i := range mine {
				mine[i] = int64(10*c.Rank() + i)
			}
			if err := w.Fence(0); err != nil {
				return err
			}
			var seen []int64
			for rank := range c.Size() {
				mem, unit, err := w.SharedQuery(rank)
				if err := errors.Join(err, expect("unit", unit, 8), expect("size", len(mem), 8*rank)); err != nil {
					return err
				}
				seen = append(seen, datatype.View[int64](mem)...)
			}
			if !slices.Equal(seen, []int64{10, 20, 21}) {
				return fmt.Errorf("seen %v", seen)
			}
			lowest, _, err1 := w.SharedQuery(ProcNull)
			one, _, err2 := w.SharedQuery(1)
			two, _, err3 := w.SharedQuery(2)
			if err := errors.Join(err1, err2, err3, expect("lowest", &lowest[0], &one[0]), classed("rank 3", third(w.SharedQuery(3)), mpierr.Rank)); err != nil {
				return err
			}
			if beside := len(one) == 8 && addressOf(two)-addressOf(one) == 8; beside != (apart == "false") {
				return fmt.Errorf("rank 2's memory is %d bytes from rank 1's", addressOf(two)-addressOf(one))
			}
			if err := errors.Join(w.Fence(0), Accumulate(w, []int64{100}, 2, 1, Sum), w.Fence(0)); err != nil {
				return err
			}
			return errors.Join(expect("sum", datatype.View[int64](two)[1], 321), w.Fence(NoSucceed), w.Free())
		})
	}
}

func addressOf(b []byte) int64 { return Of(b).Address() }

// A datatype whose description is longer than a header goes apart, and one that was
// heard of before is known.
func TestLargeDatatypeOfTarget(t *testing.T) {
	ofWindows(t, 2, 5000, func(w *Win, mem []int64) error {
		var lens, disps []int64
		for i := range 900 {
			lens, disps = append(lens, 1+int64(i%2)), append(disps, int64(5*i+i%3))
		}
		typ, err := datatype.Indexed(lens, disps, datatype.Basic(datatype.Int64))
		if err = errors.Join(err, typ.Commit()); err != nil {
			return err
		}
		out, got := make([]int64, 1350), make([]int64, 1350)
		for i := range out {
			out[i] = int64(i + 1)
		}
		to := Target{1 - w.Rank(), 0, 1, typ}
		if err := errors.Join(w.Fence(0), w.Put(Of(out), to), w.Fence(0), w.Accumulate(Of(out), to, Sum), w.Accumulate(Of(out), to, Sum), w.Fence(0), w.Get(Of(got), to), w.Fence(NoSucceed)); err != nil {
			return err
		}
		for i := range got {
			if got[i] != 3*out[i] {
				return fmt.Errorf("element %d: %d", i, got[i])
			}
		}
		return expect("a gap", mem[2], 0)
	})
}

// Another's header that is none, or that leads outside the window, ends the job of
// whom it is for, with an error that says why; memory stays as it is.
func TestHostileHeaders(t *testing.T) {
	ints, err := datatype.Basic(datatype.Int64).AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	n := int64(len(ints))
	still, err := datatype.Resized(datatype.Basic(datatype.Int64), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	same, err := still.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"noise":                 pattern(100, 3),
		"a short one":           {1, 2},
		"a long one":            make([]byte, rma.HeaderSize+1),
		"put outside":           (&rma.Header{Kind: rma.Put, Seq: 1, Disp: 10, Count: 1, Len: 8, TypeLen: n, Type: ints}).Append(nil, true),
		"get outside":           (&rma.Header{Kind: rma.Get, Seq: 1, Disp: 9, Count: 2, TypeLen: n, Type: ints}).Append(nil, false),
		"put of too much":       (&rma.Header{Kind: rma.Put, Seq: 1, Count: 1, Len: 16, TypeLen: n, Type: ints}).Append(nil, true),
		"accumulate of less":    (&rma.Header{Kind: rma.Accumulate, Op: Sum, Seq: 1, Count: 2, Len: 8, TypeLen: n, Type: ints}).Append(nil, true),
		"accumulate in a place": (&rma.Header{Kind: rma.Accumulate, Op: Sum, Seq: 1, Count: 1 << 40, Len: 8 << 40, TypeLen: int64(len(same)), Type: same}).Append(nil, false),
		"swap of floats":        swapOfFloats(t),
		"unlock of nothing":     (&rma.Header{Kind: rma.Unlock, Seq: 1}).Append(nil, false),
		"no datatype":           (&rma.Header{Kind: rma.Get, Seq: 1, Count: 1, TypeLen: 3, Type: []byte{1, 255, 0}}).Append(nil, false),
	} {
		t.Run(name, func(t *testing.T) {
			procs := layout{procs: 2}.start(t)
			mem := pattern(80, 1)
			done := make(chan error, 2)
			for r, p := range procs {
				go func() { done <- hostile(p, r, mem, b) }()
			}
			for range procs {
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
			if !slices.Equal(mem, pattern(80, 1)) {
				t.Error("memory was changed")
			}
		})
	}
}

func swapOfFloats(t *testing.T) []byte {
	f, err := datatype.Basic(datatype.Float64).AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return (&rma.Header{Kind: rma.CompareAndSwap, Seq: 1, Count: 1, Len: 16, TypeLen: int64(len(f)), Type: f}).Append(nil, true)
}

// hostile has rank 1 send b as a header to rank 0, whose window is mem.
func hostile(p *proc.Process, rank int, mem, b []byte) error {
	defer func() {
		p.Lock()
		p.Endpoints.Close()
		p.Unlock()
	}()
	w, err := (*Comm)(p.Comms.World).WinCreate(Of(mem[:len(mem)*(1-rank)]), 8, nil)
	if err != nil {
		return err
	}
	if rank == 1 {
		err := w.in().Comm().SendElements(message.Standard, b, datatype.Byte, 0, rma.HeaderTag, false)
		_ = Barrier((*Comm)(p.Comms.World)) // which ends with rank 0
		return err
	}
	_, err = Recv((*Comm)(p.Comms.World), []byte{0}, 1, 5) // never comes
	if !errors.Is(err, ErrJobOver) || ErrorClass(err) == mpierr.ProcAborted {
		return fmt.Errorf("rank 0 ends with %w", err)
	}
	return nil
}

// A member that dies is told of to those who wait for it, however they do.
func TestWindowOfTheDead(t *testing.T) {
	for name, wait := range map[string]func(w *Win, all *Group) error{
		"Lock":  func(w *Win, _ *Group) error { return w.Lock(LockShared, 1, 0) },
		"Start": func(w *Win, all *Group) error { return w.Start(all, 0) },
		"Wait":  func(w *Win, all *Group) error { return errors.Join(w.Post(all, 0), w.Wait()) },
		"Fence": func(w *Win, _ *Group) error { return w.Fence(0) },
		"Unlock": func(w *Win, _ *Group) error {
			return errors.Join(w.Lock(LockShared, 1, NoCheck), Get(w, []int64{0}, 1, 0), w.Unlock(1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			procs := layout{procs: 2, client: func(r int) int { return r }}.start(t) // at two sites: the memory of one that only seems dead can be read
			done, dead := make(chan error, 2), make(chan struct{})
			for r, p := range procs {
				go func() {
					w, err := WinCreate((*Comm)(p.Comms.World), make([]int64, 4), nil)
					if r == 1 {
						defer close(dead)
					} else if err == nil {
						<-dead
						all, _ := w.Group()
						other, _ := all.Excl([]int{0})
						err = classed(name, wait(w, other), mpierr.ProcAborted)
					}
					p.Lock()
					p.Endpoints.Close()
					p.Unlock()
					done <- err
				}()
			}
			for range procs {
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// Small operations allocate nothing at their origin once there was one of them.
func TestWindowAllocations(t *testing.T) {
	layout{}.run(t, func(t *testing.T, c *Comm) error {
		mem, out, got := make([]int64, 10), []int64{1, 2}, make([]int64, 2)
		w, err := WinCreate(c, mem, nil)
		if err := errors.Join(err, w.LockAll(0)); err != nil {
			return err
		}
		allocs := testing.AllocsPerRun(100, func() {
			if err := errors.Join(Put(w, out, 0, 3), Get(w, got, 0, 3), Accumulate(w, out, 0, 5, Sum)); err != nil {
				t.Error(err)
			}
			if err := w.FlushLocal(0); err != nil {
				t.Error(err)
			}
		})
		if allocs > 0 {
			t.Errorf("%v allocations", allocs)
		}
		return errors.Join(w.UnlockAll(), w.Free())
	})
}
