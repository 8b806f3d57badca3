package link_test

import (
	"bytes"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/openimpi/impi/plugins/sdk/link"
)

// boxSides returns the two sides of one direction after taken fast-box messages, all of
// which were taken.
func boxSides(taken uint64) (w, r *link.FastBoxes) {
	page, read := new(link.FastBoxPage), new(atomic.Uint64)
	read.Store(taken)
	w = &link.FastBoxes{Out: page, Read: read, Sent: taken, Seen: taken, Limit: math.MaxUint64}
	r = &link.FastBoxes{In: page, Told: read, Taken: taken}
	return w, r
}

// post sends a fast-box message at a position of the stream, if there is room.
func post(l *link.FastBoxes, at uint64, tag int32) bool {
	n := l.Room(0)
	if n == nil {
		return false
	}
	n.Tag, n.Context = tag, at
	l.Post(nil, at)
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
	l.Take(0)
}

// Data that are not there fault before anything of their message is seen.
func TestFastBoxFault(t *testing.T) {
	const n = 60000
	memory, err := unix.Mmap(-1, 0, 64<<10, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(memory) }()
	for _, hole := range []int{0, 4 << 10, 20 << 10, 56 << 10} { // its page is not there
		w, r := boxSides(0)
		area := make([]byte, link.MaxFastBoxArea)
		w.OutData, w.OutArea, r.InData, r.InArea = &area[0], uint64(len(area)), &area[0], uint64(len(area))
		if err := unix.Mprotect(memory[hole:hole+4<<10], unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
		func() {
			defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
			defer func() { _ = recover() }()
			w.Room(n)
			w.Post(memory[:n], 0)
			t.Errorf("no fault at %d", hole)
		}()
		if w.Sent != 0 || w.Placed != 0 || r.Begun(0) != nil {
			t.Errorf("a fault at %d: a message has begun", hole)
		}
		if err := unix.Mprotect(memory[hole:hole+4<<10], unix.PROT_READ|unix.PROT_WRITE); err != nil {
			t.Fatal(err)
		}
		memory[0], memory[n-1] = 7, 9
		w.Room(n)
		w.Post(memory[:n], 0)
		if m := r.Next(0); m == nil || !bytes.Equal(r.Content(m, m.Len), memory[:n]) {
			t.Errorf("after a fault at %d the next message is wrong", hole)
		}
	}
}

func TestFastBoxRoom(t *testing.T) {
	w, r := boxSides(0)
	for i := range int32(link.FastBoxCount) {
		if !post(w, 5, i) {
			t.Fatalf("no room for fast-box message %d", i)
		}
	}
	if w.Room(0) != nil {
		t.Fatal("room for one more")
	}
	const lag = link.FastBoxCount / 4
	for i := range int32(lag) {
		if w.Room(0) != nil {
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
	if w.Room(0) != nil {
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
	if n := w.Room(0); n != w.Room(0) {
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
		if w.Room(0) != nil {
			t.Errorf("room after %d of %d were taken", said, w.Sent)
		}
		w.Read.Store(w.Sent)
		if w.Room(0) == nil {
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
				n := w.Room(0)
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
				w.Post(nil, at)
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
					r.Take(0)
					on = on[1:]
				}
			}
		}
	})
}

// withData gives the two sides of boxSides memory for data.
func withData(w, r *link.FastBoxes, area int) {
	mem := make([]byte, area)
	w.OutData, w.OutArea, r.InData, r.InArea = &mem[0], uint64(area), &mem[0], uint64(area)
}

func TestDataOfFastBoxes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		area := 1 << rapid.IntRange(7, 12).Draw(t, "area")
		longest := max(link.InFastBox, area/link.FastBoxShare)
		w, r := boxSides(0)
		withData(w, r, area)
		var on [][]byte // their way
		next := byte(0)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			if rapid.IntRange(0, 2).Draw(t, "step") > 0 {
				data := bytes.Repeat([]byte{next}, rapid.IntRange(0, longest+1).Draw(t, "n"))
				switch m := w.Room(len(data)); {
				case m == nil && len(data) <= longest && len(on) == 0 && r.Owed == 0:
					t.Fatalf("no room for %d bytes, and all was taken and told", len(data))
				case m != nil && len(data) > longest:
					t.Fatalf("room for %d bytes", len(data))
				case m != nil:
					w.Post(data, 0)
					on = append(on, data)
					next++
				}
				continue
			}
			m := r.Next(0)
			if (m != nil) != (len(on) > 0) {
				t.Fatalf("%d are on their way, and there is one: %v", len(on), m != nil)
			}
			if m == nil {
				continue
			}
			if got := r.Content(m, m.Len); !bytes.Equal(got, on[0]) {
				t.Fatal("it has other data")
			}
			if m.Len != uint32(len(on[0])) {
				t.Fatalf("%d bytes, want %d", m.Len, len(on[0]))
			}
			r.Take(m.Len)
			on = on[1:]
		}
		if w.Charged < r.Received || len(on) == 0 && w.Charged != r.Received {
			t.Fatalf("%d were charged, %d received", w.Charged, r.Received)
		}
	})
}

// A writer that lies about where data are, or how many, gets nobody to look there.
func TestDataOfFastBoxesThatAreNowhere(t *testing.T) {
	const area = 1 << 10
	_, r := boxSides(0)
	withData(new(link.FastBoxes), r, area)
	for _, c := range []struct {
		at, n uint32
		ok    bool
	}{
		{0, area / 2, true}, {area / 2, area / 2, true}, {0, area/2 + 1, false}, {area/2 + 1, area / 2, false},
		{1<<32 - 1, 97, false}, {area - 96, 97, false}, {area - 97, 97, true}, {0, 1<<32 - 1, false}, {1<<32 - 1, 96, true},
	} {
		var m link.EagerMessage
		*(*uint32)(unsafe.Pointer(&m.Data)) = c.at
		if got := r.Content(&m, c.n); (got != nil) != c.ok || c.ok && len(got) != int(c.n) {
			t.Errorf("%d bytes at %d: %d", c.n, c.at, len(got))
		}
	}
}

// A message of several pieces is begun before it is there, and is copied as far as it has been
// written.
func TestPiecesOfAFastBox(t *testing.T) {
	const n = 3*link.FastBoxPiece + 5
	w, r := boxSides(0)
	withData(w, r, link.MaxFastBoxArea)
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(i * 7 >> 3)
	}
	if w.Room(n) == nil {
		t.Fatal("no room")
	}
	w.Post(data, 4)
	m := r.Begun(4)
	if m == nil || r.Next(4) != m || link.FastBoxPart(m, n) != n {
		t.Fatal("it is not there")
	}
	to := make([]byte, n)
	if !link.CopyFastBox(to, r.Content(m, n), m) || !bytes.Equal(to, data) {
		t.Error("it has other data")
	}
	written := (*uint32)(unsafe.Pointer(&m.Data[4]))
	for _, part := range []uint32{0, link.FastBoxPiece, n - 1} {
		*written = part
		clear(to)
		if r.Next(4) != nil || r.Begun(4) != m || link.FastBoxPart(m, n) != part {
			t.Errorf("with %d bytes it is there", part)
		}
		if link.CopyFastBox(to, r.Content(m, n), m) || !bytes.Equal(to[:part], data[:part]) || !bytes.Equal(to[part:], make([]byte, n-part)) {
			t.Errorf("with %d bytes others were copied", part)
		}
	}
	*written = 1<<32 - 1 // a lie
	if r.Next(4) != m || link.FastBoxPart(m, n) != n || !link.CopyFastBox(to, r.Content(m, n), m) {
		t.Error("more than there can be written")
	}
}

// The other side copies while this one writes.
func TestPiecesAtTheSameTime(t *testing.T) {
	const count = 300
	w, r := boxSides(0)
	withData(w, r, link.MaxFastBoxArea)
	size := func(i int) int { return link.MaxFastBox - i*97%(link.MaxFastBox/2) }
	var both sync.WaitGroup
	both.Go(func() {
		data := make([]byte, link.MaxFastBox)
		for i := 0; i < count; {
			for k := range data {
				data[k] = byte(k>>6 + i)
			}
			if w.Room(size(i)) == nil {
				runtime.Gosched()
				continue
			}
			w.Post(data[:size(i)], 0)
			i++
		}
	})
	var bad error
	both.Go(func() {
		to := make([]byte, link.MaxFastBox)
		for i := 0; i < count; {
			m, n := r.Begun(0), size(i)
			if m == nil || !link.CopyFastBox(to[:n], r.Content(m, m.Len), m) {
				runtime.Gosched()
				continue
			}
			for k, b := range to[:n] {
				if b != byte(k>>6+i) {
					bad = fmt.Errorf("byte %d of message %d is another", k, i)
				}
			}
			r.Take(uint32(n))
			i++
		}
	})
	both.Wait()
	if bad != nil {
		t.Error(bad)
	}
}

func TestChargeIsLimited(t *testing.T) {
	w, r := boxSides(0)
	withData(w, r, 1<<10)
	w.Limit = 3*link.FastBoxCost(0) + link.FastBoxCost(200)
	for range 2 {
		post(w, 0, 1)
	}
	if w.Room(200) == nil {
		t.Error("no room within the limit")
	}
	w.Post(make([]byte, 200), 0)
	if w.Room(200) != nil || !post(w, 0, 1) || w.Room(0) != nil || w.Charged != w.Limit {
		t.Errorf("%d are charged of %d", w.Charged, w.Limit)
	}
	for n, want := range map[uint32]uint64{0: 448, 96: 448, 97: 448, 128: 448, 129: 576, 4096: 4416, 4097: 8512} {
		if got := link.FastBoxCost(n); got != want {
			t.Errorf("%d bytes cost %d, want %d", n, got, want)
		}
	}
}

// With two goroutines, a fast-box message is complete before it is seen, and is not
// overwritten before it is taken.
func TestFastBoxesAtTheSameTime(t *testing.T) {
	const count = 20_000
	w, r := boxSides(0)
	withData(w, r, 1<<10)
	size := func(i uint64) int { return int(i * 7 % 257) }
	var both sync.WaitGroup
	both.Go(func() {
		for i := uint64(0); i < count; {
			n := w.Room(size(i))
			if n == nil {
				runtime.Gosched()
				continue
			}
			n.Context = i
			w.Post(bytes.Repeat([]byte{byte(i)}, size(i)), i/3)
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
			if n.Context != i || n.Len != uint32(size(i)) {
				bad = fmt.Errorf("fast-box message %d is number %d, of %d bytes", i, n.Context, n.Len)
			}
			for _, b := range r.Content(n, n.Len) {
				if b != byte(i) {
					bad = fmt.Errorf("fast-box message %d has other data", i)
				}
			}
			r.Take(uint32(size(i)))
			i++
		}
	})
	both.Wait()
	if bad != nil {
		t.Error(bad)
	}
}
