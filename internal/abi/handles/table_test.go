//go:build !386 && !arm

package handles

import (
	"sync"
	"testing"
)

func TestHandles(t *testing.T) {
	tab := NewTable[int](Group)
	a, b := tab.Add(1), tab.Add(2)
	if a < FirstOwn || b < FirstOwn || a == b {
		t.Fatalf("handles %#x and %#x", a, b)
	}
	if p := tab.Get(a); p == nil || *p != 1 {
		t.Errorf("Get gives %v, want 1", p)
	}
	if n := Int(b); n < int32(FirstOwn) || tab.FromInt(n) != b {
		t.Errorf("%#x is %d as an int, which is %#x", b, n, tab.FromInt(n))
	}
	if !tab.Free(a) || tab.Free(a) {
		t.Error("a handle can be freed once")
	}
	c := tab.Add(3)
	if Int(c) != Int(a) {
		t.Errorf("%#x does not take the place of %#x", c, a)
	}
	if tab.Get(a) != nil {
		t.Error("a freed handle finds the object that took its place")
	}
}

func TestMadeUp(t *testing.T) {
	tab, other := NewTable[int](Group), NewTable[int](Op)
	if tab.Get(1<<KindShift) != nil {
		t.Error("an empty table has an object")
	}
	h, o := tab.Add(1), other.Add(2)
	for _, wild := range []Handle{0, 1, 257, 4096, h + 1, h + 4, h + 8, h + 8*chunkSize, o, h &^ (low << 32), h + 1<<32, ^Handle(0), 0xdeadbeef, 0x7ffff7a01234} {
		if tab.Get(wild) != nil {
			t.Errorf("%#x has an object", wild)
		}
		if tab.Free(wild) {
			t.Errorf("%#x could be freed", wild)
		}
	}
	if tab.FromInt(-1) != 0 || tab.FromInt(Int(o)) != 0 || tab.FromInt(Int(h)+8) != 0 {
		t.Error("an int that no object has gives one")
	}
}

func TestNewIsNotSeenBeforeSet(t *testing.T) {
	tab := NewTable[int](Request)
	h, p := tab.New()
	*p = 7
	if tab.Get(h) != nil {
		t.Error("the handle is good before Set")
	}
	tab.Set(h)
	if q := tab.Get(h); q != p {
		t.Error("the handle does not find its object")
	}
	g, _ := tab.New()
	tab.Cancel(g)
	if tab.Get(g) != nil {
		t.Error("a cancelled handle is good")
	}
	if again := tab.Add(1); Int(again) != Int(g) {
		t.Error("the place of a cancelled handle is lost")
	}
}

func TestEach(t *testing.T) {
	tab := NewTable[int](Win)
	var hs []Handle
	for i := range 3 * chunkSize {
		hs = append(hs, tab.Add(i))
	}
	tab.Free(hs[1])
	n := 0
	tab.Each(func(h Handle, v *int) {
		if hs[*v] != h {
			t.Errorf("object %d has handle %#x, want %#x", *v, h, hs[*v])
		}
		n++
	})
	if n != len(hs)-1 {
		t.Errorf("%d objects, want %d", n, len(hs)-1)
	}
}

func TestManyThreads(t *testing.T) {
	tab := NewTable[int](Request)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			var held []Handle
			for i := range 2000 {
				h := tab.Add(g)
				if p := tab.Get(h); p == nil || *p != g {
					t.Errorf("thread %d finds another's object", g)
					return
				}
				held = append(held, h)
				if i%3 != 0 {
					tab.Free(held[0])
					held = held[1:]
				}
			}
			for _, h := range held {
				if !tab.Free(h) {
					t.Error("a handle was lost")
				}
			}
		})
	}
	wg.Wait()
	tab.Each(func(Handle, *int) { t.Error("an object is left") })
}

func TestAllocations(t *testing.T) {
	tab := NewTable[[4]int](Request)
	tab.Free(tab.Add([4]int{}))
	if n := testing.AllocsPerRun(100, func() {
		h := tab.Add([4]int{1})
		_ = tab.Get(h)
		tab.Free(h)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
