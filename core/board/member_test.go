package board

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func post(tb testing.TB, p *Member, step Step, what string) {
	tb.Helper()
	if w := p.Vacant(step, len(what)); !w.Done() {
		tb.Fatalf("step %#x: no room for %d bytes", step, len(what))
	}
	copy(p.Room(step, len(what)), what)
	p.Post(step, 7, len(what))
}

func pattern(n, seed int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8 + seed)
	}
	return string(b)
}

func TestBarrier(t *testing.T) {
	p, q := pair(t, open(t, 2), 0)
	for n := range uint64(20) {
		step := FirstStep(n)
		p.Begin(step)
		w := p.Arrived(p.Others(), step)
		if w.Done() || w.Missing() != SetOf(1) {
			t.Fatalf("operation %d: over before the other has come, left %b", n, w.Missing())
		}
		q.Begin(step)
		if w2 := q.Arrived(q.Others(), step); !w.Done() || !w2.Done() {
			t.Fatalf("operation %d: not over", n)
		}
	}
}

// Data of every length come over, and those of so many operations as there is
// room for are there at a time.
func TestPosts(t *testing.T) {
	for _, n := range []int{1, inline, inline + 1, roomSize, roomSize + 1, MaxPost} {
		p, q := pair(t, open(t, 2), 3)
		ahead := entries
		if n > roomSize {
			ahead = 2
		}
		for i := range 3 * entries {
			step := FirstStep(uint64(i))
			p.Begin(step)
			if i >= ahead {
				w := p.Vacant(step, n)
				if w.Done() {
					t.Fatalf("%d bytes: room for operation %d while nothing was read", n, i)
				}
				read(t, q, FirstStep(uint64(i-ahead)), pattern(n, i-ahead))
				q.Begin(FirstStep(uint64(i - ahead + 1)))
				if !w.Done() {
					t.Fatalf("%d bytes: no room for operation %d", n, i)
				}
			}
			post(t, p, step, pattern(n, i))
		}
	}
}

func read(tb testing.TB, q *Member, step Step, want string) {
	tb.Helper()
	q.Begin(step)
	if w := q.Posted(SetOf(0), step); !w.Done() {
		tb.Fatalf("step %#x: not posted", step)
	}
	got, err := q.Read(0, step, 7, len(want))
	if err != nil || string(got) != want {
		tb.Fatalf("step %#x: %v, %d bytes", step, err, len(got))
	}
}

// A member that has not read an operation itself does not overwrite what it has posted there,
// though the others have read it.
func TestOverwrites(t *testing.T) {
	for _, n := range []int{1, inline, inline + 1, roomSize, roomSize + 1, MaxPost} {
		for apart := 1; apart <= entries+1; apart++ {
			p, q := pair(t, open(t, 2), 3)
			first, last := FirstStep(5), FirstStep(uint64(5+apart))
			for i := range apart {
				step := FirstStep(uint64(5 + i))
				p.Begin(step)
				q.Begin(step)
				copy(p.Room(step, n), pattern(n, i))
				p.Post(step, 7, n)
			}
			says := p.Overwrites(last, n, first)
			copy(p.Room(last, n), pattern(n, apart))
			p.Post(last, 7, n)
			b, err := p.Read(p.me, first, 7, n)
			if over := err != nil || string(b) != pattern(n, 0); over != says {
				t.Errorf("%d bytes, %d operations apart: overwritten: %v, but Overwrites says %v", n, apart, over, says)
			}
		}
	}
}

// End makes room if data are in an area, and writes nothing if there is room for long.
func TestEnd(t *testing.T) {
	p, q := pair(t, open(t, 2), 0)
	long := pattern(roomSize+1, 1)
	for i := range uint64(2) {
		p.Begin(FirstStep(i))
		post(t, p, FirstStep(i), long)
	}
	p.Begin(FirstStep(2))
	w := p.Vacant(FirstStep(2), len(long))
	read(t, q, FirstStep(0), long)
	if w.Done() {
		t.Fatal("room before the reader has finished")
	}
	if !q.End() || !w.Done() {
		t.Fatal("no room after End")
	}
	q.Begin(FirstStep(1))
	if q.End() {
		t.Error("End of a step in which nothing long was read")
	}
}

// A member that has done the operations in between otherwise makes room by
// beginning the next one.
func TestOperationsElsewhere(t *testing.T) {
	p, q := pair(t, open(t, 2), 0)
	p.Begin(FirstStep(0))
	post(t, p, FirstStep(0), "a")
	read(t, q, FirstStep(0), "a")
	p.Begin(FirstStep(4 * entries))
	w := p.Vacant(FirstStep(4*entries), 1)
	if w.Done() {
		t.Fatal("the reader may still be at operation 0")
	}
	q.Begin(FirstStep(4 * entries))
	if !w.Done() {
		t.Error("the reader has begun the next operation")
	}
}

func TestMembersThatDiffer(t *testing.T) {
	p, q := pair(t, open(t, 2), 0)
	p.Begin(FirstStep(0))
	post(t, p, FirstStep(0), "abc")
	q.Begin(FirstStep(0))
	for _, x := range []struct {
		what uint8
		n    int
		want string
	}{{7, 4, "rank 0 sent 3 bytes, 4 are expected"}, {8, 3, "rank 0 calls another operation"}} {
		var m *Mismatch
		_, err := q.Read(0, FirstStep(0), x.what, x.n)
		if !errors.As(err, &m) || !strings.Contains(err.Error(), x.want) {
			t.Errorf("operation %d of %d bytes: %v", x.what, x.n, err)
		}
	}
	q.Begin(FirstStep(1))
	p.Begin(FirstStep(entries))
	post(t, p, FirstStep(entries), "later")
	if _, err := q.Read(0, FirstStep(0), 7, 3); !errors.Is(err, ErrBoard) {
		t.Errorf("what was written over: %v", err)
	}
}

func TestSleepers(t *testing.T) {
	p, q := pair(t, open(t, 2), 1)
	if q.Sleep(); q.Sleepers() != 0 {
		t.Error("a member is its own waker")
	}
	if p.Sleepers() != SetOf(1) || p.Sleepers() != 0 {
		t.Error("a sleeper is to be woken once")
	}
	q.Sleep()
	if q.EndSleep(); p.Sleepers() != 0 {
		t.Error("awake, and woken all the same")
	}
}

func TestBackingIsAskedForOnce(t *testing.T) {
	p, _ := pair(t, open(t, 2), 1)
	for _, x := range []struct{ n, at, size int }{
		{inline, 0, 0}, {inline + 1, p.area(0), entries * roomSize}, {roomSize, 0, 0},
		{roomSize + 1, p.area(0) + entries*roomSize, 2 * halfSize}, {MaxPost, 0, 0},
	} {
		if at, size := p.Backing(x.n); size != x.size || size > 0 && at != x.at {
			t.Errorf("for %d bytes: %d bytes at %d", x.n, size, at)
		}
	}
	for _, n := range []int{1, inline, inline + 1, roomSize, roomSize + 1, MaxPost} {
		for i := range uint64(entries) {
			room := p.Room(FirstStep(i), n)
			if len(room) != n || cap(room) != n {
				t.Errorf("room of %d bytes for %d", len(room), n)
			}
		}
	}
}

// A Member goes on where it was when its State is kept elsewhere.
func TestMove(t *testing.T) {
	p, q := pair(t, open(t, 2), 3)
	p.Number.Store(7)
	post(t, p, FirstStep(0), pattern(100, 1))
	p.Backing(100)
	old := p.State
	s := &State{Seen: 1 << 60, Ops: 5}
	p.SetState(s)
	if p.State != s || s.Number.Load() != 7 || s.Slot != old.Slot || s.Areas != old.Areas || s.Members != 2 || s.Me != 0 || s.Ops != 0 {
		t.Errorf("the State is %+v, it was %+v", s, old)
	}
	if at, size := p.Backing(100); at != 0 || size != 0 {
		t.Errorf("%d bytes at %d are asked for once more", size, at)
	}
	if w := p.Vacant(FirstStep(entries), 100); w.Done() {
		t.Error("what nobody has read may be overwritten")
	}
	read(t, q, FirstStep(0), pattern(100, 1))
	if p.Index() != 3 {
		t.Errorf("slot %d", p.Index())
	}
}

func TestNothingIsAllocated(t *testing.T) {
	p, q := pair(t, open(t, 2), 0)
	n, data := uint64(0), bytes.Repeat([]byte{1}, 100)
	if a := testing.AllocsPerRun(100, func() {
		step := FirstStep(n)
		n++
		p.Begin(step)
		q.Begin(step)
		w := p.Vacant(step, len(data))
		w.Done()
		copy(p.Room(step, len(data)), data)
		p.Post(step, 1, len(data))
		p.Sleepers()
		w = q.Posted(q.Others(), step)
		w.Done()
		_, _ = q.Read(0, step, 1, len(data))
		q.End()
	}); a > 0 {
		t.Errorf("%v allocations", a)
	}
}

// Whatever the memory contains, nothing is read or written outside of it, and data that are
// found have the expected length.
func FuzzHostileBoard(f *testing.F) {
	f.Add([]byte{}, uint64(0), 10)
	f.Add(bytes.Repeat([]byte{0xff}, 3000), uint64(1)<<47, MaxPost)
	f.Fuzz(func(t *testing.T, junk []byte, number uint64, n int) {
		if n <= 0 || n > MaxPost {
			return
		}
		mem := memory(t, 2)
		b, err := Open(mem, 2)
		if err != nil {
			t.Fatal(err)
		}
		copy(mem[atTaken:ControlSize(2)], junk)
		if s, ok := b.ReserveSlot(); ok && (s < 0 || s >= Slots) {
			t.Fatalf("slot %d", s)
		}
		p, q := pair(t, b, 0)
		step := FirstStep(number)
		p.Begin(step)
		for _, w := range []Wait{p.Arrived(p.Others(), step), p.Posted(p.Others(), step), p.Vacant(step, n)} {
			if w.Done() != (w.Missing() == 0) {
				t.Fatal("over, with somebody left")
			}
		}
		if got, err := q.Read(0, step, 1, n); err == nil && len(got) != n {
			t.Fatalf("%d bytes for %d", len(got), n)
		}
		copy(p.Room(step, n), junk)
		p.Post(step, 1, n)
		if got, err := q.Read(0, step, 1, n); err != nil || len(got) != n {
			t.Fatal(err)
		}
		if m := p.Sleepers(); m&^p.Others() != 0 {
			t.Fatalf("sleepers %b", m)
		}
		p.Leave()
		q.Leave()
	})
}

// What Write has written is found once PublishRelaxed has been called, and not before.
func TestTell(t *testing.T) {
	for _, n := range []int{1, inline + 1, roomSize + 1} {
		p, q := pair(t, open(t, 2), 2)
		for i := range 3 * entries {
			step, want := FirstStep(uint64(i)), pattern(n, i)
			p.Begin(step)
			q.Begin(step)
			if w := p.Vacant(step, n); !w.Done() {
				t.Fatalf("no room for operation %d though all was read", i)
			}
			copy(p.Room(step, n), want)
			p.Write(step, 7, n)
			w := q.Posted(SetOf(0), step)
			if w.Done() {
				t.Fatalf("operation %d was found before it was told", i)
			}
			if p.PublishRelaxed(step) != 0 || !w.Done() {
				t.Fatalf("operation %d was not found", i)
			}
			if b, err := q.Read(0, step, 7, n); err != nil || string(b) != want {
				t.Fatalf("operation %d: %d bytes: %v", i, len(b), err)
			}
			q.Done()
		}
	}
}

// PublishRelaxed returns who sleeps, but in a simulator not who has just gone to sleep, and found
// nothing yet: a later check finds it.
func TestPublishRelaxedMisses(t *testing.T) {
	b := open(t, 2)
	p, q := pair(t, b, 2)
	step := FirstStep(0)
	p.Begin(step)
	p.Write(step, 7, 0)
	q.Sleep()
	if got := p.PublishRelaxed(step); got != SetOf(1) {
		t.Errorf("members %b sleep", got)
	}
	step = FirstStep(1)
	w := q.Posted(SetOf(0), step)
	found := false
	b.Interleave(func() {
		b.Interleave(func() {})
		q.Sleep()
		found = w.Done()
	})
	p.Begin(step)
	p.Write(step, 7, 0)
	if got := p.PublishRelaxed(step); got != 0 || found || !w.Done() {
		t.Errorf("members %b sleep, found before %v, now %v", got, found, w.Done())
	}
}
