package weakmem

import "testing"

// lendPoints are those of memory that a member lends on the board, and posts for who cannot read
// it.
var lendPoints = []point{
	{name: "lend", file: "cmd/libmpi/onboard.h", code: "atomic_exchange((_Atomic uint64_t *)e, o->step);", order: Sequential, less: Relaxed},
	{name: "see", file: "cmd/libmpi/onboard.h", code: "if (LOAD(*word) >= want)", order: Acquire, less: Relaxed},
	{name: "give back", file: "cmd/libmpi/onboard.h", code: "atomic_exchange(progress(o->b, o->b->me), o->step | READ);", order: Sequential, less: Relaxed},
	{name: "see asked", file: "cmd/libmpi/onboard.h", code: "LOAD(*asked) == o->step", order: Acquire, less: Relaxed, slack: "the step that it has read makes known that it has asked"},
	{name: "asks", file: "core/board/lend.go", code: "p.b.word(at + atAsked).Store(uint64(t))", order: Sequential, less: Relaxed, slack: "the step that follows makes it known"},
}

// lend is a member that lends memory, which its program changes once it has it back, and one that
// reads it, or cannot and asks for it.
func lend(p *Program, o orders, early bool) {
	const step, again = 2, 4
	memory, posted := p.Data("memory"), p.Data("posted")
	entry, progress, asked := p.Word("entry", 0), p.Word("progress", 0), p.Word("asked", 0)
	p.Thread("lender", func(t *Thread) {
		t.Write(memory, 1)
		t.Exchange(entry, step, o["lend"])
		if !early {
			t.Await(progress, o["see"], atLeast(step|1))
		}
		if t.Load(asked, o["see asked"]) == step {
			t.Write(posted, 1)
			t.Exchange(entry, again, o["lend"])
		}
		t.Write(memory, 2)
	})
	p.Thread("reader", func(t *Thread) {
		t.Await(entry, o["see"], atLeast(step))
		if t.Choose(2, "cannot read") == 0 {
			if v := t.Read(memory); v != 1 {
				t.Failf("it reads %d", v)
			}
			t.Exchange(progress, step|1, o["give back"])
			return
		}
		t.Store(asked, step, o["asks"])
		t.Exchange(progress, step|1, o["give back"])
		t.Await(entry, o["see"], atLeast(again))
		t.Read(posted)
	})
}

func TestLend(t *testing.T) {
	try(t, lendPoints, func(p *Program, o orders) { lend(p, o, false) })
	finds(t, "memory is changed before it is given back", "memory", func(p *Program) { lend(p, ordersOf(lendPoints), true) })
}

// slotPoints are those of a slot of a board whose members leave it, and which others get.
var slotPoints = []point{
	{name: "left", file: "core/board/member.go", code: "if left.Add(1) != uint64(p.n) {", order: Sequential, less: Relaxed},
	{name: "free", file: "core/board/board.go", code: "b.word(atTaken).And(^(uint64(1) << slot))", order: Sequential, less: Relaxed},
	{name: "reserve", file: "core/board/board.go", code: "if taken.CompareAndSwap(was, was|1<<slot) {", order: Sequential, less: Relaxed},
}

// slots has two members leave a slot, of whom the last clears it, and somebody who waits for one.
func slots(p *Program, o orders) {
	taken, left, progress := p.Word("taken", 1), p.Word("left", 0), p.Words("progress", 2)
	data := p.DataOf("entry", 2)
	for i := range 2 {
		p.Thread("member", func(t *Thread) {
			t.Store(progress[i], 2, Sequential)
			t.Write(data[i], 1)
			if t.Change(left, o["left"], func(v uint64) uint64 { return v + 1 })+1 != 2 {
				return
			}
			for k := range 2 {
				t.Store(progress[k], 0, Sequential)
				t.Write(data[k], 0)
			}
			t.Store(left, 0, Sequential)
			t.Change(taken, o["free"], func(v uint64) uint64 { return v &^ 1 })
		})
	}
	p.Thread("next", func(t *Thread) {
		t.Await(taken, Relaxed, is(0))
		if !t.CompareAndSwap(taken, 0, 1, o["reserve"]) {
			t.Failf("it is taken")
		}
		for k := range 2 {
			if v, d := t.Load(progress[k], Relaxed), t.Read(data[k]); v != 0 || d != 0 {
				t.Failf("member %d of the next communicator begins with step %d and data %d", k, v, d)
			}
		}
		if t.Load(left, Relaxed) != 0 {
			t.Failf("somebody has left it already")
		}
	})
}

func TestSlots(t *testing.T) { try(t, slotPoints, slots) }
