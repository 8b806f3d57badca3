package mpi

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"unsafe"

	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/engine/construct"
)

// ofWindows runs a body on jobs of several shapes, whose members have a window of n int64s each,
// all zero: memory of the program's, and then memory that MPI has allocated, in which members of
// one site operate directly. In the last ones sites differ in their byte order, as far as it is
// known.
func ofWindows(t *testing.T, procs, n int, body func(w *Win, mem []int64) error) {
	t.Helper()
	ofDistantWindows(t, procs, n, body)
	onLayouts(t, procs, createdWindow(n, body))
	onLayouts(t, procs, func(_ *testing.T, c *Comm) error {
		w, err := c.WinAllocate(int64(8*n), 8, nil)
		if err != nil {
			return err
		}
		return errors.Join(body(w, numbersOf(w)), w.Free())
	})
}

// ofDistantWindows is ofWindows for members that are each at a site of its own, so that all
// operations are messages.
func ofDistantWindows(t *testing.T, procs, n int, body func(w *Win, mem []int64) error) {
	t.Helper()
	own := func(r int) int { return r }
	for name, l := range map[string]layout{
		"far": {procs: procs, client: own}, "far, small packets": {procs: procs, client: own, dataLen: 16},
	} {
		t.Run(name, func(t *testing.T) { l.run(t, createdWindow(n, body)) })
	}
}

// createdWindow has a body get a window of the program's memory.
func createdWindow(n int, body func(w *Win, mem []int64) error) func(t *testing.T, c *Comm) error {
	return func(_ *testing.T, c *Comm) error {
		mem := make([]int64, n)
		w, err := WinCreate(c, mem, nil)
		if err != nil {
			return err
		}
		return errors.Join(body(w, mem), w.Free())
	}
}

// numbersOf is the memory of an allocated window.
func numbersOf(w *Win) []int64 {
	mem := w.Memory()
	return unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(mem))), len(mem)/8)
}

func onLayouts(t *testing.T, procs int, body func(t *testing.T, c *Comm) error) {
	t.Helper()
	run := func(name string, l layout) {
		t.Run(name, func(t *testing.T) { l.run(t, body) })
	}
	run("one site", layout{procs: procs})
	run("two sites", layout{procs: procs, client: func(r int) int { return r % 2 }})
	run("small packets", layout{procs: procs, dataLen: 16})
	for _, rep := range []string{"native-be", "native-le"} {
		run(rep, orders(procs, rep))
	}
}

// orders is a job whose sites exchange data in a representation.
func orders(procs int, rep string) layout {
	client := func(r int) int { return r % 2 }
	return layout{procs: procs, client: client, data: func(from, to int) string {
		if client(from) == client(to) {
			return ""
		}
		return rep
	}}
}

// Each of three ways to synchronise makes a ring of puts, gets and accumulates
// visible.
func TestWindowRing(t *testing.T) {
	ways := map[string]struct {
		open, shut func(w *Win, to, from *Group) error
	}{
		"fence": {
			func(w *Win, _, _ *Group) error { return w.Fence(NoPrecede) },
			func(w *Win, _, _ *Group) error { return w.Fence(NoSucceed) },
		},
		"post start complete wait": {
			func(w *Win, to, from *Group) error { return errors.Join(w.Post(from, 0), w.Start(to, 0)) },
			func(w *Win, _, _ *Group) error { return errors.Join(w.Complete(), w.Wait()) },
		},
		"lock all": {
			func(w *Win, _, _ *Group) error {
				return errors.Join(construct.PlainBarrier(w.in().Comm()), w.LockAll(0))
			},
			func(w *Win, _, _ *Group) error {
				return errors.Join(w.UnlockAll(), construct.PlainBarrier(w.in().Comm()))
			},
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			ofWindows(t, 4, 600, func(w *Win, mem []int64) error {
				me, n := w.Rank(), w.Size()
				right, left := (me+1)%n, (me+n-1)%n
				all, err := w.Group()
				to, err1 := all.Incl([]int{right})
				from, err2 := all.Incl([]int{left})
				if err := errors.Join(err, err1, err2); err != nil {
					return err
				}
				mem[599] = int64(me)
				long, got := make([]int64, 500), []int64{0}
				for i := range long {
					long[i] = int64(1000*me + i)
				}
				if err := errors.Join(way.open(w, to, from),
					Put(w, []int64{int64(me) + 7}, right, 0), Put(w, long, right, 10), Get(w, got, right, 599),
					Accumulate(w, []int64{5, 6}, right, 1, Sum), Accumulate(w, []int64{5, 6}, right, 1, Sum),
					way.shut(w, to, from)); err != nil {
					return err
				}
				return errors.Join(expect("put", mem[0], int64(left)+7), expect("get", got[0], int64(right)),
					expect("sums", [2]int64(mem[1:3]), [2]int64{10, 12}), expect("long put", mem[509], int64(1000*left+499)))
			})
		})
	}
}

// The predefined attributes, the name, the group and the info of each flavour.
func TestWindowAccessors(t *testing.T) {
	layout{procs: 2}.run(t, func(_ *testing.T, c *Comm) error {
		info := NewInfo()
		none := info.Set("accumulate_ordering", "none")
		mem := make([]int32, 10*(c.Rank()+1))
		created, err1 := c.WinCreate(Of(mem), 4, info)
		allocated, err2 := c.WinAllocate(100, 2, nil)
		dynamic, err3 := c.WinCreateDynamic(nil)
		shared, err4 := c.WinAllocateShared(64, 8, nil)
		if err := errors.Join(none, info.Set("no_locks", "false"), err1, err2, err3, err4); err != nil {
			return err
		}
		for _, x := range []struct {
			w          *Win
			flavor     Flavor
			size, unit int
			base       unsafe.Pointer
		}{
			{created, WinFlavorCreate, 4 * len(mem), 4, unsafe.Pointer(&mem[0])},
			{allocated, WinFlavorAllocate, 100, 2, unsafe.Pointer(&allocated.Memory()[0])},
			{dynamic, WinFlavorDynamic, 0, 1, nil},
			{shared, WinFlavorShared, 64, 8, unsafe.Pointer(&shared.Memory()[0])},
		} {
			if err := x.w.looks(c, x.flavor, x.size, x.unit, x.base); err != nil {
				return fmt.Errorf("flavour %d: %w", x.flavor, err)
			}
		}
		before, err1 := created.GetInfo() // of a copy of what was given
		again := created.SetInfo(info)
		after, err2 := created.GetInfo()
		if err := errors.Join(err1, again, err2); err != nil {
			return err
		}
		n, err1 := before.Len()
		m, err2 := after.Len()
		if err := errors.Join(err1, err2, expect("keys", [2]int{n, m}, [2]int{2, 3})); err != nil {
			return err
		}
		given, _, err1 := after.Get("accumulate_ordering")
		presumed, _, err2 := after.Get("accumulate_ops")
		if err := errors.Join(err1, err2, expect("hints", [2]string{given, presumed}, [2]string{"none", "same_op_no_op"})); err != nil {
			return err
		}
		return errors.Join(shared.Free(), dynamic.Free(), allocated.Free(), created.Free(),
			classed("freed twice", created.Free(), mpierr.Win), classed("Memory", created.Check(), mpierr.Win),
			expect("memory of a freed one", created.Memory() == nil, true))
	})
}

// looks checks what can be asked of a window.
func (w *Win) looks(c *Comm, flavor Flavor, size, unit int, base unsafe.Pointer) error {
	g, err := w.Group()
	cg, err2 := c.Group()
	same, err3 := g.Compare(cg)
	if err := errors.Join(err, err2, err3, expect("group", same, Identical), expect("name", w.Name(), ""), w.SetName("here"), expect("name", w.Name(), "here")); err != nil {
		return err
	}
	want := map[Keyval]any{WinBase: base, WinSize: size, WinDispUnit: unit, WinCreateFlavor: int(flavor), WinModel: WinUnified}
	for key, v := range want {
		got, ok, err := w.Attr(key)
		if err != nil || !ok || got != v {
			return fmt.Errorf("attribute %d is %v (%v), %w; want %v", key, got, ok, err, v)
		}
		if err := errors.Join(classed("set", w.SetAttr(key, 1), mpierr.Keyval), classed("delete", w.DeleteAttr(key), mpierr.Keyval)); err != nil {
			return err
		}
	}
	return errors.Join(expect("size", w.Size(), c.Size()), expect("rank", w.Rank(), c.Rank()), w.Check())
}

// Attributes are deleted last first when the window is freed, which a DeleteFunc
// that fails prevents.
func TestWindowAttributes(t *testing.T) {
	layout{procs: 2}.run(t, func(_ *testing.T, c *Comm) error {
		w, err := c.WinAllocate(8, 1, nil)
		if err != nil {
			return err
		}
		var gone []any
		stay := true
		deleted := func(_ *Win, _ Keyval, value, _ any) error {
			if stay {
				return errors.New("not yet")
			}
			gone = append(gone, value)
			return nil
		}
		a, err1 := CreateWinKeyval(nil, deleted, nil)
		b, err2 := CreateWinKeyval(NullCopy, deleted, nil)
		other, err3 := CreateKeyval(nil, nil, nil)
		if err := errors.Join(err1, err2, err3, w.SetAttr(a, 1), w.SetAttr(b, 2), classed("of a communicator", w.SetAttr(other, 1), mpierr.Keyval)); err != nil {
			return err
		}
		if w.Free() == nil || w.Check() != nil {
			return errors.New("freed although an attribute stays")
		}
		stay = false
		if err := errors.Join(w.Free(), FreeWinKeyval(&a), FreeWinKeyval(&b), classed("no key", FreeWinKeyval(&b), mpierr.Keyval), FreeKeyval(&other)); err != nil {
			return err
		}
		if !slices.Equal(gone, []any{2, 1}) {
			return fmt.Errorf("deleted in the order %v", gone)
		}
		return nil
	})
}
