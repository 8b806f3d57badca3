package link_test

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/openimpi/impi/core/link"
)

// boxSides returns the two sides of one direction after taken fast-box messages, all of
// which were taken.
func boxSides(taken uint64) (w, r *link.FastBoxes) {
	page, read := new(link.FastBoxPage), new(atomic.Uint64)
	read.Store(taken)
	w = &link.FastBoxes{Out: page, Read: read, Sent: taken, Seen: taken, Limit: taken - 1}
	r = &link.FastBoxes{In: page, Told: read, Taken: taken}
	return w, r
}

// post sends a fast-box message at a position of the stream, if there is room.
func post(l *link.FastBoxes, at uint64, tag int32) bool {
	n := l.Room()
	if n == nil {
		return false
	}
	n.Tag, n.Context = tag, at
	l.Post(at)
	return true
}

// take takes the fast-box message at a position of the stream.
func take(t *testing.T, l *link.FastBoxes, at uint64, tag int32) {
	t.Helper()
	n := l.Next(at)
	if n == nil {
		t.Fatalf("no fast-box message %d behind %d bytes", tag, at)
	}
	if n.Tag != tag || n.Context != at {
		t.Fatalf("fast-box message %d behind %d bytes, want %d behind %d", n.Tag, n.Context, tag, at)
	}
	l.Take()
}

func TestFastBoxRoom(t *testing.T) {
	w, r := boxSides(0)
	for i := range int32(link.FastBoxCount) {
		if !post(w, 5, i) {
			t.Fatalf("no room for fast-box message %d", i)
		}
	}
	if w.Room() != nil {
		t.Fatal("room for one more")
	}
	const lag = link.FastBoxCount / 4
	for i := range int32(lag) {
		if w.Room() != nil {
			t.Fatalf("room after %d were taken", i)
		}
		take(t, r, 5, i)
		if told := r.Told.Load(); told != uint64(i+1)/lag*lag {
			t.Fatalf("%d were taken, it says %d", i+1, told)
		}
	}
	for i := range int32(lag) {
		if !post(w, 5, link.FastBoxCount+i) {
			t.Fatalf("no room for %d more", i)
		}
	}
	if w.Room() != nil {
		t.Error("more room than was told of")
	}
	for i := range int32(link.FastBoxCount) {
		take(t, r, 5, lag+i)
	}
	if r.Next(5) != nil || r.Told.Load() != link.FastBoxCount+lag {
		t.Errorf("after all: %v, told %d", r.Next(5), r.Told.Load())
	}
}

// Room returns the same place until Post is called: nothing is sent before.
func TestFastBoxIsNotThereBeforePost(t *testing.T) {
	w, r := boxSides(0)
	if n := w.Room(); n != w.Room() {
		t.Error("two places")
	}
	if r.Next(0) != nil {
		t.Error("it is there")
	}
}

// A reader that says that impossibly many were taken gets no fast-box messages until its
// number is possible again.
func TestImpossibleNumbersOfFastBoxes(t *testing.T) {
	for _, said := range []uint64{3*link.FastBoxCount + 1, 2*link.FastBoxCount - 1, 0, math.MaxUint64, 1 << 63, 1 << 32} {
		w, _ := boxSides(2 * link.FastBoxCount)
		for i := range int32(link.FastBoxCount) {
			post(w, 0, i)
		}
		w.Read.Store(said)
		if w.Room() != nil {
			t.Errorf("room after %d of %d were taken", said, w.Sent)
		}
		w.Read.Store(w.Sent)
		if w.Room() == nil {
			t.Error("no room after a possible number")
		}
	}
}

func TestFastBoxComesAtItsPlace(t *testing.T) {
	w, r := boxSides(0)
	const at = 1000
	post(w, at, 1)
	for _, where := range []uint64{at - 1, at + 1, 0, at + 1<<31} {
		if r.Next(where) != nil {
			t.Errorf("it comes behind %d bytes", where)
		}
	}
	if n, ok := r.Ahead(900); n != at-900 || !ok {
		t.Errorf("%d bytes ahead, %v", n, ok)
	}
	take(t, r, at, 1)
	if _, ok := r.Ahead(at); ok {
		t.Error("another one")
	}
	for i := range int32(link.FastBoxCount) { // once round: what lies there is old
		if r.Next(at) != nil {
			t.Fatalf("fast-box message %d comes before it is sent", i)
		}
		post(w, at, 2+i)
		take(t, r, at, 2+i)
	}
	if r.Next(at) != nil {
		t.Error("the oldest comes once more")
	}
}

// A fast-box message of a later round, which only a writer that ignores the reader can
// send, is not taken.
func TestFastBoxOfTheNextRound(t *testing.T) {
	w, r := boxSides(0)
	w.Sent, w.Seen = link.FastBoxCount, link.FastBoxCount
	post(w, 0, 1)
	if _, ok := r.Ahead(0); ok || r.Next(0) != nil {
		t.Error("it comes")
	}
}

// Marks have 32 bits of each number, and both wrap.
func TestFastBoxesWrap(t *testing.T) {
	for _, from := range []uint64{1<<32 - 100, 1<<33 - 3, 1<<64 - 50} {
		w, r := boxSides(from)
		at := from - 333
		for i := range int32(300) {
			at += uint64(i % 7)
			if !post(w, at, i) {
				t.Fatalf("no room for fast-box message %d after %d", i, from)
			}
			if n, ok := r.Ahead(at - 5); n != 5 || !ok {
				t.Fatalf("%d bytes ahead, %v", n, ok)
			}
			take(t, r, at, i)
		}
	}
}

// Fast-box messages come once, in order, at their positions, and there is room as long as
// the reader keeps up.
func TestRandomFastBoxes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.SampledFrom([]uint64{0, 1<<32 - 70, 1<<64 - 20}).Draw(t, "from")
		w, r := boxSides(from)
		type sent struct{ at, tag uint64 }
		var on []sent // their way
		at, read, tag := uint64(1<<32-500), uint64(1<<32-500), uint64(0)
		for range rapid.IntRange(1, 400).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				at += rapid.Uint64Range(0, 100).Draw(t, "bytes")
			case 1, 2:
				n := w.Room()
				if n == nil {
					if len(on) < link.FastBoxCount*3/4 {
						t.Fatalf("no room, and %d are on their way", len(on))
					}
					continue
				}
				if len(on) == link.FastBoxCount {
					t.Fatal("room that is taken")
				}
				n.Context = tag
				w.Post(at)
				on = append(on, sent{at, tag})
				tag++
			default:
				n := r.Next(read)
				ahead, ok := r.Ahead(read)
				switch {
				case len(on) == 0 && (n != nil || ok):
					t.Fatal("a fast-box message that nobody sent")
				case len(on) == 0:
				case !ok || uint64(ahead) != on[0].at-read || (n != nil) != (ahead == 0):
					t.Fatalf("%d bytes ahead, %v; want %d", ahead, ok, on[0].at-read)
				case n == nil:
					read += rapid.Uint64Range(1, uint64(ahead)).Draw(t, "read")
				default:
					if n.Context != on[0].tag {
						t.Fatalf("fast-box message %d, want %d", n.Context, on[0].tag)
					}
					r.Take()
					on = on[1:]
				}
			}
		}
	})
}

// With two goroutines, a fast-box message is complete before it is seen, and is not
// overwritten before it is taken.
func TestFastBoxesAtTheSameTime(t *testing.T) {
	const count = 20_000
	w, r := boxSides(0)
	var both sync.WaitGroup
	both.Go(func() {
		for i := uint64(0); i < count; {
			n := w.Room()
			if n == nil {
				runtime.Gosched()
				continue
			}
			n.Context, n.Len = i, uint32(i%link.MaxFastBox)
			for k := range n.Data[:n.Len] {
				n.Data[k] = byte(i)
			}
			w.Post(i / 3)
			i++
		}
	})
	var bad error
	both.Go(func() {
		for i := uint64(0); i < count; {
			n := r.Next(i / 3)
			if n == nil {
				runtime.Gosched()
				continue
			}
			if n.Context != i || n.Len != uint32(i%link.MaxFastBox) {
				bad = fmt.Errorf("fast-box message %d is number %d, of %d bytes", i, n.Context, n.Len)
			}
			for _, b := range n.Data[:n.Len] {
				if b != byte(i) {
					bad = fmt.Errorf("fast-box message %d has other data", i)
				}
			}
			r.Take()
			i++
		}
	})
	both.Wait()
	if bad != nil {
		t.Error(bad)
	}
}
