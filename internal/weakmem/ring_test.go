package weakmem

import "testing"

// ringPoints are those of a ring whose two sides sleep where it is empty or full.
var ringPoints = []point{
	{name: "head", file: "plugins/sdk/support/ring/stream.go", code: "w.b.head.Swap(w.head)", order: Sequential, less: AcquireRelease},
	{name: "tail", file: "plugins/sdk/support/ring/stream.go", code: "r.b.tail.Swap(r.tail)", order: Sequential, less: AcquireRelease},
	{name: "see head", file: "plugins/sdk/support/ring/stream.go", code: "head := r.b.head.Load()", order: Sequential, less: Acquire},
	{name: "see tail", file: "plugins/sdk/support/ring/stream.go", code: "tail := w.b.tail.Load()", order: Sequential, less: Acquire},
	{name: "reader sleeps", file: "plugins/sdk/support/ring/link.go", code: "l.in.b.readerSleeps.Swap(1)", order: Sequential, less: AcquireRelease},
	{name: "writer sleeps", file: "plugins/sdk/support/ring/link.go", code: "l.out.b.writerSleeps.Swap(1)", order: Sequential, less: AcquireRelease},
	{name: "see reader", file: "plugins/sdk/support/ring/link.go", code: "l.out.b.readerSleeps.Load() != 0", order: Sequential, less: Acquire},
	{name: "see writer", file: "plugins/sdk/support/ring/link.go", code: "l.in.b.writerSleeps.Load() != 0", order: Sequential, less: Acquire},
}

// ring has items written to one place and read from it by sides that sleep as soon as they must
// wait.
func ring(p *Program, o orders, items int) {
	head, tail, place := p.Word("head", 0), p.Word("tail", 0), p.Data("place")
	reader, writer := newSleeper(p, "reader"), newSleeper(p, "writer")
	side := func(t *Thread, me, other sleeper, mySleep, seeOther string, theirs, mine Word, see, publish string, does func(i int)) {
		for i := range items {
			want := uint64(i + 1)
			if mine == head { // there is room once all that was written before is read
				want--
			}
			for t.Load(theirs, o[see]) < want {
				t.Exchange(me.word, 1, o[mySleep])
				if t.Load(theirs, o[see]) >= want {
					t.Store(me.word, 0, Sequential)
					break
				}
				t.Sleep(me.bell)
			}
			does(i)
			t.Exchange(mine, uint64(i+1), o[publish])
			if t.Load(other.word, o[seeOther]) != 0 && t.CompareAndSwap(other.word, 1, 0, Sequential) {
				t.Ring(other.bell)
			}
		}
	}
	p.Thread("writer", func(t *Thread) {
		side(t, writer, reader, "writer sleeps", "see reader", tail, head, "see tail", "head", func(i int) { t.Write(place, uint64(i+1)) })
	})
	p.Thread("reader", func(t *Thread) {
		side(t, reader, writer, "reader sleeps", "see writer", head, tail, "see head", "tail", func(i int) {
			if v := t.Read(place); v != uint64(i+1) {
				t.Failf("item %d is %d", i+1, v)
			}
		})
	})
}

func TestRing(t *testing.T) {
	try(t, ringPoints, func(p *Program, o orders) { ring(p, o, 2) })
}
