package weakmem

import "testing"

// boxPoints are those of fast-box messages: the writer in C or Go, the reader in C or Go, and how a
// reader goes to sleep (plugins/sdk/support/ring, Arm).
var boxPoints = []point{
	{name: "mark", file: "cmd/libmpi/fastsend.h", code: "atomic_exchange(&p->mark, mark);", order: Sequential, less: AcquireRelease},
	{name: "look at sleeper", file: "cmd/libmpi/fastsend.h", code: "int asleep = sent && atomic_load(l->sleeps) != 0;", order: Sequential, less: Acquire},
	{name: "see mark", file: "cmd/libmpi/fastrecv.h", code: "return LOAD(p->mark) == ((l->taken + 1) << 32", order: Acquire, less: Relaxed},
	{name: "told", file: "cmd/libmpi/fastrecv.h", code: "STORE(*l->told, l->taken);", order: Release, less: Relaxed},
	{name: "read", file: "cmd/libmpi/fastsend.h", code: "uint64_t seen = LOAD(*l->read);", order: Acquire, less: Relaxed},
	{name: "sleeps", file: "plugins/sdk/support/ring/link.go", code: "l.in.b.readerSleeps.Swap(1)", order: Sequential, less: AcquireRelease},
	{name: "see mark before sleep", file: "plugins/sdk/link/fastbox.go", code: "mark := l.In[l.Taken%FastBoxCount].mark.Load()", order: Sequential, less: Acquire},
}

// boxes is a writer of messages into two boxes and a reader that polls, or sleeps.
func boxes(p *Program, o orders, messages int, sleeping bool) {
	const count = 2
	marks, data := p.Words("mark", count), p.DataOf("box", count)
	told, reader := p.Word("told", 0), newSleeper(p, "reader")
	p.Thread("writer", func(t *Thread) {
		for sent, seen := 0, 0; sent < messages; {
			if sent-seen >= count {
				seen = int(t.Await(told, o["read"], atLeast(uint64(seen+1))))
			}
			i := sent % count
			sent++
			t.Write(data[i], uint64(sent))
			t.Exchange(marks[i], uint64(sent), o["mark"])
			if sleeping && t.Load(reader.word, o["look at sleeper"]) != 0 && t.CompareAndSwap(reader.word, 1, 0, Sequential) {
				t.Ring(reader.bell)
			}
		}
	})
	p.Thread("reader", func(t *Thread) {
		for taken := 0; taken < messages; {
			mark := marks[taken%count]
			wanted := func(v uint64) bool { return v == uint64(taken+1) }
			if !sleeping || t.Choose(2, "sleep") == 0 {
				t.Await(mark, o["see mark"], wanted)
			} else {
				sleepUntil(t, reader, mark, o, wanted)
			}
			if v := t.Read(data[taken%count]); v != uint64(taken+1) {
				t.Failf("message %d is %d", taken+1, v)
			}
			taken++
			t.Store(told, uint64(taken), o["told"])
		}
	})
}

// sleepUntil is a reader that has polled in vain.
func sleepUntil(t *Thread, s sleeper, mark Word, o orders, wanted func(uint64) bool) {
	for {
		t.Exchange(s.word, 1, o["sleeps"])
		if wanted(t.Load(mark, o["see mark before sleep"])) {
			t.Store(s.word, 0, Sequential)
			return
		}
		t.Sleep(s.bell)
		if wanted(t.Load(mark, o["see mark"])) {
			return
		}
	}
}

func TestBoxes(t *testing.T) {
	points := boxPoints
	try(t, points, func(p *Program, o orders) { boxes(p, o, 3, true) })
}

// TestBoxesReused has boxes written again and again, by a reader that never sleeps.
func TestBoxesReused(t *testing.T) {
	points := []point{boxPoints[2], boxPoints[3], boxPoints[4]}
	o := ordersOf(boxPoints)
	try(t, points, func(p *Program, some orders) {
		for name, order := range o {
			if _, ok := some[name]; !ok {
				some[name] = order
			}
		}
		boxes(p, some, 5, false)
	})
}

// piecePoints are those of longer data, which the reader copies while they are written.
var piecePoints = []point{
	{name: "mark", file: "cmd/libmpi/fastsend.h", code: "STORE(p->mark, mark);", order: Release, less: Relaxed},
	{name: "filled", file: "cmd/libmpi/fastsend.h", code: "atomic_exchange(filled(p), (uint32_t)part);", order: Sequential, less: Relaxed},
	{name: "see mark", file: "cmd/libmpi/fastrecv.h", code: "return LOAD(p->mark) == ((l->taken + 1) << 32", order: Acquire, less: Relaxed},
	{name: "see filled", file: "cmd/libmpi/fastrecv.h", code: "uint32_t part = LOAD(*filled(p));", order: Acquire, less: Relaxed},
	{name: "told", file: "cmd/libmpi/fastrecv.h", code: "STORE(*l->told, l->taken);", order: Release, less: Relaxed},
	{name: "read", file: "cmd/libmpi/fastsend.h", code: "uint64_t seen = LOAD(*l->read);", order: Acquire, less: Relaxed},
}

// pieces is a writer of messages of two pieces, for which there is one box, and their reader.
func pieces(p *Program, o orders, resets bool) {
	const messages, parts = 3, 2
	mark, filled, told := p.Word("mark", 0), p.Word("filled", 0), p.Word("told", 0)
	envelope, data := p.Data("envelope"), p.DataOf("piece", parts)
	p.Thread("writer", func(t *Thread) {
		for n := uint64(1); n <= messages; n++ {
			t.Await(told, o["read"], atLeast(n-1))
			t.Write(envelope, n)
			if resets {
				t.Store(filled, 0, Relaxed)
			}
			t.Store(mark, n, o["mark"])
			for k := range parts {
				t.Write(data[k], n)
				t.Exchange(filled, uint64(k+1), o["filled"])
			}
		}
	})
	p.Thread("reader", func(t *Thread) {
		for n := uint64(1); n <= messages; n++ {
			t.Await(mark, o["see mark"], func(v uint64) bool { return v == n })
			if v := t.Read(envelope); v != n {
				t.Failf("message %d has the envelope of %d", n, v)
			}
			for done := 0; done < parts; {
				for part := int(t.Await(filled, o["see filled"], atLeast(uint64(done+1)))); done < part; done++ {
					if v := t.Read(data[done]); v != n {
						t.Failf("message %d has a piece of %d", n, v)
					}
				}
			}
			t.Store(told, n, o["told"])
		}
	})
}

func TestPieces(t *testing.T) {
	try(t, piecePoints, func(p *Program, o orders) { pieces(p, o, true) })
	finds(t, "what was filled last is not reset", "reader reads piece", func(p *Program) { pieces(p, ordersOf(piecePoints), false) })
}

// streamPoints are those of packets in the ring and fast-box messages between them.
var streamPoints = []point{
	{name: "head", file: "plugins/sdk/support/ring/stream.go", code: "w.b.head.Swap(w.head)", order: Sequential, less: Relaxed},
	{name: "see head", file: "plugins/sdk/support/ring/stream.go", code: "head := r.b.head.Load()", order: Sequential, less: Relaxed},
	{name: "mark", file: "plugins/sdk/link/fastbox.go", code: "box.mark.Swap(mark)", order: Sequential, less: Relaxed},
	{name: "see mark", file: "plugins/sdk/link/fastbox.go", code: "mark := l.In[l.Taken%FastBoxCount].mark.Load()", order: Sequential, less: Relaxed},
}

// mixed is a stream of packets 1, 3 and 5 with messages 2 and 4 in boxes between them. A box says
// behind how many packets it comes.
func mixed(p *Program, o orders, boxFirst bool) {
	const looks = 3
	head, marks := p.Word("head", 0), p.Words("mark", 2)
	stream, data := p.DataOf("packet", 3), p.DataOf("box", 2)
	p.Thread("writer", func(t *Thread) {
		for i := range 3 {
			t.Write(stream[i], uint64(2*i+1))
			t.Exchange(head, uint64(i+1), o["head"])
			if i < 2 {
				t.Write(data[i], uint64(2*i+2))
				t.Exchange(marks[i], uint64(i+1)<<8|uint64(i+1), o["mark"])
			}
		}
	})
	p.Thread("reader", func(t *Thread) {
		var got, tail, taken, seen uint64
		next := func(v uint64) {
			if got++; v != got {
				t.Failf("it gets %d as number %d", v, got)
			}
		}
		for range looks {
			var mark uint64
			look := func() {
				if taken < 2 {
					mark = t.Load(marks[taken], o["see mark"])
				}
			}
			if boxFirst {
				look()
			}
			if seen == tail {
				seen = t.Load(head, o["see head"])
			}
			if !boxFirst {
				look()
			}
			have := seen
			if mark>>8 == taken+1 {
				have = min(have, mark&255)
			}
			for ; tail < have; tail++ {
				next(t.Read(stream[tail]))
			}
			if mark>>8 == taken+1 && mark&255 == tail {
				next(t.Read(data[taken]))
				taken++
			}
		}
	})
}

func TestMixed(t *testing.T) {
	try(t, streamPoints, func(p *Program, o orders) { mixed(p, o, false) })
	finds(t, "boxes are looked at first", "it gets 5 as number 4", func(p *Program) { mixed(p, ordersOf(streamPoints), true) })
}
