package mpi

import (
	"errors"
	"fmt"
	"testing"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/engine/construct"
)

// badWindow is what bad calls are tried on: a window of two ranks with 10 int64s
// each, locked by LockAll if locked.
type badWindow struct {
	w           *Win
	b, one      Buffer
	all         *Group
	uncommitted *Datatype
	still       *Datatype // an int64 without extent
}

// at is a target that is right: one int64.
func (x *badWindow) at(change func(to *Target)) Target {
	to := Target{1 - x.w.Rank(), 0, 1, datatype.Basic(datatype.Int64)}
	if change != nil {
		change(&to)
	}
	return to
}

func (x *badWindow) put(change func(to *Target)) error { return x.w.Put(x.one, x.at(change)) }

func (x *badWindow) other() int { return 1 - x.w.Rank() }

type badCall struct {
	name  string
	class mpierr.Class
	call  func(x *badWindow) error
}

// badOperations are called within LockAll.
var badOperations = []badCall{
	{"rank 2", mpierr.Rank, func(x *badWindow) error { return x.put(func(to *Target) { to.Rank = 2 }) }},
	{"any rank", mpierr.Rank, func(x *badWindow) error { return x.put(func(to *Target) { to.Rank = AnySource }) }},
	{"a negative displacement", mpierr.Disp, func(x *badWindow) error { return x.put(func(to *Target) { to.Disp = -1 }) }},
	{"a displacement too far", mpierr.RMARange, func(x *badWindow) error { return x.put(func(to *Target) { to.Disp = 10 }) }},
	{"a displacement very far", mpierr.RMARange, func(x *badWindow) error { return x.put(func(to *Target) { to.Disp = 1<<63 - 1 }) }},
	{"too many items", mpierr.RMARange, func(x *badWindow) error { return x.w.Get(x.b, x.at(func(to *Target) { to.Count = 11 })) }},
	{"a negative count there", mpierr.Count, func(x *badWindow) error { return x.put(func(to *Target) { to.Count = -1 }) }},
	{"a negative count here", mpierr.Count, func(x *badWindow) error {
		return x.w.Put(Typed([]int64{1}, -1, datatype.Basic(datatype.Int64)), x.at(nil))
	}},
	{"no datatype there", mpierr.Type, func(x *badWindow) error { return x.put(func(to *Target) { to.Type = nil }) }},
	{"an uncommitted datatype there", mpierr.Type, func(x *badWindow) error { return x.put(func(to *Target) { to.Type = x.uncommitted }) }},
	{"no datatype here", mpierr.Type, func(x *badWindow) error { return x.w.Get(Typed([]int64{1}, 1, nil), x.at(nil)) }},
	{"no memory here", mpierr.Buffer, func(x *badWindow) error { return x.w.Get(At(nil, 1, datatype.Basic(datatype.Int64)), x.at(nil)) }},
	{"in place of what", mpierr.Buffer, func(x *badWindow) error { return x.w.Put(InPlace, x.at(nil)) }},
	{"put of more than there is room for", mpierr.Size, func(x *badWindow) error { return x.w.Put(x.b, x.at(nil)) }},
	{"get of more than there is room for", mpierr.Size, func(x *badWindow) error { return x.w.Get(x.one, x.at(func(to *Target) { to.Count = 2 })) }},
	{"accumulate of fewer", mpierr.Size, func(x *badWindow) error { return x.w.Accumulate(x.one, x.at(func(to *Target) { to.Count = 2 }), Sum) }},
	{"accumulate of more", mpierr.Size, func(x *badWindow) error { return x.w.Accumulate(x.b, x.at(nil), Sum) }},
	{"get-accumulate of more", mpierr.Size, func(x *badWindow) error { return x.w.GetAccumulate(x.b, x.one, x.at(nil), Sum) }},
	{"no operation", mpierr.Op, func(x *badWindow) error { return x.w.Accumulate(x.one, x.at(nil), nil) }},
	{"an operation of the program's", mpierr.Op, func(x *badWindow) error {
		return x.w.Accumulate(x.one, x.at(nil), NewOp(func(_, _ []int64) {}, true))
	}},
	{"accumulate of floats into integers", mpierr.Type, func(x *badWindow) error {
		return x.w.Accumulate(Of([]float64{1}), x.at(nil), Sum)
	}},
	{"accumulate into items that lie on each other", mpierr.Type, func(x *badWindow) error {
		return x.w.Accumulate(x.b, x.at(func(to *Target) { to.Count, to.Type = 10, x.still }), Sum)
	}},
	{"BAND of floats", mpierr.Op, func(x *badWindow) error {
		return Accumulate(x.w, []float64{1}, x.other(), 0, BAnd)
	}},
	{"Rput to rank -7", mpierr.Rank, func(x *badWindow) error { return second(x.w.Rput(x.one, x.at(func(to *Target) { to.Rank = -7 }))) }},
	{"Rget of no datatype", mpierr.Type, func(x *badWindow) error { return second(x.w.Rget(x.one, x.at(func(to *Target) { to.Type = nil }))) }},
	{"Raccumulate by nothing", mpierr.Op, func(x *badWindow) error { return second(x.w.Raccumulate(x.one, x.at(nil), nil)) }},
	{"RgetAccumulate outside", mpierr.RMARange, func(x *badWindow) error {
		return second(x.w.RgetAccumulate(x.one, x.one, x.at(func(to *Target) { to.Disp = 10 }), Sum))
	}},
	{"FetchAndOp of two", mpierr.Count, func(x *badWindow) error { return x.w.FetchAndOp(x.b, x.one, x.other(), 0, Sum) }},
	{"FetchAndOp of different datatypes", mpierr.Type, func(x *badWindow) error {
		return x.w.FetchAndOp(Of([]float64{1}), x.one, x.other(), 0, Sum)
	}},
	{"FetchAndOp to nowhere", mpierr.Buffer, func(x *badWindow) error { return FetchAndOp[int64](x.w, 1, nil, x.other(), 0, Sum) }},
	{"Put of a slice to rank 2", mpierr.Rank, func(x *badWindow) error { return Put(x.w, []int64{1}, 2, 0) }},
	{"Get of a slice outside", mpierr.RMARange, func(x *badWindow) error { return Get(x.w, []int64{1}, x.other(), 10) }},
	{"GetAccumulate of slices by nothing", mpierr.Op, func(x *badWindow) error {
		return GetAccumulate(x.w, []int64{1}, []int64{1}, x.other(), 0, nil)
	}},
	{"CompareAndSwap of rank 2", mpierr.Rank, func(x *badWindow) error { return CompareAndSwap(x.w, 1, 2, new(int64), 2, 0) }},
	{"CompareAndSwap of floats", mpierr.Type, func(x *badWindow) error {
		f := Of([]float64{1})
		return x.w.CompareAndSwap(f, f, f, x.other(), 0)
	}},
	{"CompareAndSwap of different datatypes", mpierr.Type, func(x *badWindow) error {
		return x.w.CompareAndSwap(x.one, Of([]uint64{1}), x.one, x.other(), 0)
	}},
	{"CompareAndSwap outside", mpierr.RMARange, func(x *badWindow) error { return x.w.CompareAndSwap(x.one, x.one, x.one, x.other(), 10) }},
}

// badSynchronisations are called within LockAll, too.
var badSynchronisations = []badCall{
	{"Fence", mpierr.RMASync, func(x *badWindow) error { return x.w.Fence(0) }},
	{"Fence with NoCheck", mpierr.Assert, func(x *badWindow) error { return x.w.Fence(NoCheck) }},
	{"Start", mpierr.RMASync, func(x *badWindow) error { return x.w.Start(x.all, 0) }},
	{"Start of no group", mpierr.Group, func(x *badWindow) error { return x.w.Start(nil, 0) }},
	{"Start with NoPut", mpierr.Assert, func(x *badWindow) error { return x.w.Start(x.all, NoPut) }},
	{"Post of no group", mpierr.Group, func(x *badWindow) error { return x.w.Post(nil, 0) }},
	{"Post with NoSucceed", mpierr.Assert, func(x *badWindow) error { return x.w.Post(x.all, NoSucceed) }},
	{"Complete", mpierr.RMASync, func(x *badWindow) error { return x.w.Complete() }},
	{"Wait", mpierr.RMASync, func(x *badWindow) error { return x.w.Wait() }},
	{"Test", mpierr.RMASync, func(x *badWindow) error { return second(x.w.Test()) }},
	{"Lock within LockAll", mpierr.RMASync, func(x *badWindow) error { return x.w.Lock(LockShared, 0, 0) }},
	{"Lock of no type", mpierr.LockType, func(x *badWindow) error { return x.w.Lock(0, 0, 0) }},
	{"Lock of rank 2", mpierr.Rank, func(x *badWindow) error { return x.w.Lock(LockShared, 2, 0) }},
	{"Lock with NoStore", mpierr.Assert, func(x *badWindow) error { return x.w.Lock(LockShared, 0, NoStore) }},
	{"LockAll twice", mpierr.RMASync, func(x *badWindow) error { return x.w.LockAll(0) }},
	{"LockAll with NoPut", mpierr.Assert, func(x *badWindow) error { return x.w.LockAll(NoPut) }},
	{"Unlock", mpierr.RMASync, func(x *badWindow) error { return x.w.Unlock(0) }},
	{"Unlock of rank -5", mpierr.Rank, func(x *badWindow) error { return x.w.Unlock(-5) }},
	{"Flush of rank 2", mpierr.Rank, func(x *badWindow) error { return x.w.Flush(2) }},
	{"FlushLocal of rank 2", mpierr.Rank, func(x *badWindow) error { return x.w.FlushLocal(2) }},
	{"SharedQuery of rank 2", mpierr.Rank, func(x *badWindow) error { return third(x.w.SharedQuery(2)) }},
	{"Free", mpierr.RMASync, func(x *badWindow) error { return x.w.Free() }},
	{"Attach", mpierr.RMAFlavor, func(x *badWindow) error { return x.w.Attach(x.b) }},
	{"Detach", mpierr.RMAFlavor, func(x *badWindow) error { return x.w.Detach(x.b) }},
	{"SetErrhandler", mpierr.Errhandler, func(x *badWindow) error { return x.w.SetErrhandler(nil) }},
	{"SetInfo", mpierr.Info, func(x *badWindow) error { return x.w.SetInfo(nil) }},
	{"SetAttr of no key", mpierr.Keyval, func(x *badWindow) error { return x.w.SetAttr(KeyvalInvalid, 1) }},
	{"Attr of no key", mpierr.Keyval, func(x *badWindow) error { return third(x.w.Attr(KeyvalInvalid)) }},
	{"DeleteAttr of no key", mpierr.Keyval, func(x *badWindow) error { return x.w.DeleteAttr(KeyvalInvalid) }},
}

// outsideEpochs are called where no epoch is open.
var outsideEpochs = []badCall{
	{"Put", mpierr.RMASync, func(x *badWindow) error { return x.put(nil) }},
	{"Get", mpierr.RMASync, func(x *badWindow) error { return x.w.Get(x.one, x.at(nil)) }},
	{"Accumulate", mpierr.RMASync, func(x *badWindow) error { return x.w.Accumulate(x.one, x.at(nil), Sum) }},
	{"GetAccumulate", mpierr.RMASync, func(x *badWindow) error { return x.w.GetAccumulate(x.one, x.one, x.at(nil), Sum) }},
	{"FetchAndOp", mpierr.RMASync, func(x *badWindow) error { return x.w.FetchAndOp(x.one, x.one, 0, 0, Sum) }},
	{"CompareAndSwap", mpierr.RMASync, func(x *badWindow) error { return x.w.CompareAndSwap(x.one, x.one, x.one, 0, 0) }},
	{"Rput", mpierr.RMASync, func(x *badWindow) error { return second(x.w.Rput(x.one, x.at(nil))) }},
	{"Rget", mpierr.RMASync, func(x *badWindow) error { return second(x.w.Rget(x.one, x.at(nil))) }},
	{"Flush", mpierr.RMASync, func(x *badWindow) error { return x.w.Flush(0) }},
	{"FlushAll", mpierr.RMASync, func(x *badWindow) error { return x.w.FlushAll() }},
	{"FlushLocal", mpierr.RMASync, func(x *badWindow) error { return x.w.FlushLocal(0) }},
	{"FlushLocalAll", mpierr.RMASync, func(x *badWindow) error { return x.w.FlushLocalAll() }},
	{"UnlockAll", mpierr.RMASync, func(x *badWindow) error { return x.w.UnlockAll() }},
}

// Every bad call gives its class, tells the window's handler once, and harms
// nothing: the window works afterwards.
func TestWindowErrors(t *testing.T) {
	for name, window := range map[string]func(c *Comm) (*Win, error){
		"created":   func(c *Comm) (*Win, error) { return WinCreate(c, make([]int64, 10), nil) },
		"allocated": func(c *Comm) (*Win, error) { return c.WinAllocate(80, 8, nil) },
	} {
		t.Run(name, func(t *testing.T) { windowErrors(t, window) })
	}
}

func windowErrors(t *testing.T, window func(c *Comm) (*Win, error)) {
	layout{procs: 2}.run(t, func(_ *testing.T, c *Comm) error {
		w, err := window(c)
		if err != nil {
			return err
		}
		mem := numbersOf(w)
		all, err1 := w.Group()
		uncommitted, err2 := datatype.Contiguous(1, datatype.Basic(datatype.Int64))
		still, err4 := datatype.Resized(datatype.Basic(datatype.Int64), 0, 0)
		var heard []error
		h, err3 := NewWinErrhandler(func(_ *Win, err error) { heard = append(heard, err) })
		if err := errors.Join(err1, err2, err3, err4, still.Commit(), w.SetErrhandler(h), h.Free()); err != nil {
			return err
		}
		x := &badWindow{w: w, b: Of(make([]int64, 10)), one: Of([]int64{3}), all: all, uncommitted: uncommitted, still: still}
		try := func(calls []badCall) (err error) {
			for _, bad := range calls {
				heard = nil
				got := bad.call(x)
				err = errors.Join(err, classed(bad.name, got, bad.class))
				if len(heard) != 1 || heard[0] != got {
					err = errors.Join(err, fmt.Errorf("%s: the handler has heard %v", bad.name, heard))
				}
			}
			return err
		}
		if err := errors.Join(try(outsideEpochs), w.LockAll(0), try(badOperations), try(badSynchronisations), x.put(nil),
			x.put(func(to *Target) { to.Rank = ProcNull }), w.UnlockAll(), construct.PlainBarrier(w.in().Comm())); err != nil {
			return err
		}
		return errors.Join(expect("memory", [2]int64(mem[:2]), [2]int64{3, 0}), w.Free())
	})
}

// Constructors fail everywhere, or nowhere.
func TestBadWindowsAreNone(t *testing.T) {
	layout{procs: 2, client: func(r int) int { return r }}.run(t, func(_ *testing.T, c *Comm) error {
		bad := c.Rank() == 1
		pick := func(good, wrong int) int {
			if bad {
				return wrong
			}
			return good
		}
		for name, x := range map[string]struct {
			class mpierr.Class
			make  func() error
		}{
			"unit 0":         {mpierr.Disp, func() error { return second(c.WinAllocate(8, pick(1, 0), nil)) }},
			"size -1":        {mpierr.Size, func() error { return second(c.WinAllocate(int64(pick(8, -1)), 1, nil)) }},
			"shared size -1": {mpierr.Size, func() error { return second(c.WinAllocateShared(int64(pick(8, -1)), 1, nil)) }},
			"no memory":      {mpierr.Base, func() error { return second(c.WinCreate(At(nil, pick(0, 8), datatype.Basic(datatype.Byte)), 1, nil)) }},
			"too little": {mpierr.Size, func() error {
				return second(c.WinCreate(Typed(make([]byte, 8), pick(8, 9), datatype.Basic(datatype.Byte)), 1, nil))
			}},
			"a negative size": {mpierr.Size, func() error { return second(c.WinCreate(At(nil, pick(0, -8), datatype.Basic(datatype.Byte)), 1, nil)) }},
		} {
			if err := x.make(); !bad && err == nil || bad && classed(name, err, x.class) != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		var none *Comm
		if err := errors.Join(classed("no communicator", second(none.WinAllocate(8, 1, nil)), mpierr.Other),
			classed("two machines", second(c.WinAllocateShared(8, 1, nil)), mpierr.RMAShared)); err != nil {
			return err
		}
		return talks(c, c, 0, 1)
	})
}

// Windows between different MPI libraries are refused by all.
func TestForeignWindow(t *testing.T) {
	foreignLayout(2).run(t, func(_ *testing.T, c *Comm) error {
		return errors.Join(classed("allocate", second(c.WinAllocate(8, 1, nil)), mpierr.UnsupportedOperation),
			classed("dynamic", second(c.WinCreateDynamic(nil)), mpierr.UnsupportedOperation), talks(c, c, 0, 1))
	})
}

// Handlers of windows: none but those for windows, returned and freed as others are.
func TestWindowErrhandler(t *testing.T) {
	layout{}.run(t, func(_ *testing.T, c *Comm) error {
		w, err := c.WinAllocate(8, 1, nil)
		forComms, err1 := NewErrhandler(func(*Comm, error) {})
		calls := 0
		forWins, err2 := NewWinErrhandler(func(*Win, error) { calls++ })
		if err := errors.Join(err, err1, err2, classed("a communicator's", w.SetErrhandler(forComms), mpierr.Errhandler),
			classed("a window's", c.SetErrhandler(forWins), mpierr.Errhandler), w.SetErrhandler(forWins)); err != nil {
			return err
		}
		got, err := w.GetErrhandler()
		own := errors.New("the program's")
		if err := errors.Join(err, expect("handler", got, forWins), got.Free(), forWins.Free(), w.CallErrhandler(own), w.CallErrhandler(nil), expect("calls", calls, 1)); err != nil {
			return err
		}
		return errors.Join(classed("no function", second(NewWinErrhandler(nil)), mpierr.Arg), w.Free(),
			classed("freed", w.CallErrhandler(own), mpierr.Win), expect("calls of a freed one", calls, 1))
	})
}

// Methods of nil and of freed windows give WIN, and do not panic.
func TestNoWindow(t *testing.T) {
	layout{}.run(t, func(_ *testing.T, c *Comm) error {
		w, err := c.WinAllocate(8, 1, nil)
		if err := errors.Join(err, w.Free()); err != nil {
			return err
		}
		x := &badWindow{w: w, one: Of([]int64{3}), b: Of([]int64{3}), all: GroupEmpty}
		for _, calls := range [][]badCall{outsideEpochs, badSynchronisations} {
			for _, bad := range calls {
				err = errors.Join(err, classed(bad.name, bad.call(x), mpierr.Win))
			}
		}
		var none *Win
		return errors.Join(err, expect("size", none.Size(), 0), expect("rank", none.Rank(), Undefined), expect("memory", none.Memory() == nil, true),
			expect("name", none.Name(), "MPI_WIN_NULL"), classed("nil", none.Fence(0), mpierr.Other), classed("free nil", none.Free(), mpierr.Other),
			classed("put to nil", Put(none, []byte{1}, 0, 0), mpierr.Other), classed("group", second(none.Group()), mpierr.Other))
	})
}
