package weakmem

import "testing"

// gatePoints are those of the gate between C and Go, and of what it guards.
var gatePoints = []point{
	{name: "enter", file: "cmd/libmpi/gate.h", code: "atomic_compare_exchange_strong_explicit(&x->gate, &open, INSIDE, memory_order_acquire, memory_order_relaxed)", order: Acquire, less: Relaxed},
	{name: "leave", file: "cmd/libmpi/gate.h", code: "static inline void leave(void) { STORE(x->gate, OPEN); }", order: Release, less: Relaxed},
	{name: "close", file: "internal/engine/proc/fastpath.go", code: "x.Gate.CompareAndSwap(fastpath.Open, fastpath.Closed)", order: Sequential, less: Release},
	{name: "open", file: "internal/engine/proc/fastpath.go", code: "x.Gate.Store(fastpath.Open)", order: Sequential, less: Relaxed},
}

// gate has threads in C that pass it once each, or go to Go if they cannot, and Go, which closes it
// to do something, twice.
func gate(p *Program, o orders, asks bool) {
	const open, inside, closed = 0, 1, 2
	word, asked, guarded := p.Word("gate", open), p.Word("leave asked", 0), p.Data("requests")
	for range 2 {
		p.Thread("C", func(t *Thread) {
			if !t.CompareAndSwap(word, open, inside, o["enter"]) {
				return
			}
			t.Write(guarded, t.Read(guarded)+1)
			if asks && t.Choose(2, "wait") == 1 { // for something that Go may bring about
				t.Await(asked, Relaxed, is(1))
			}
			t.Store(word, open, o["leave"])
		})
	}
	p.Thread("Go", func(t *Thread) {
		for range 2 {
			if !t.CompareAndSwap(word, open, closed, o["close"]) {
				t.Store(asked, 1, Sequential)
				for !t.CompareAndSwap(word, open, closed, o["close"]) {
					t.Await(word, Relaxed, is(open))
				}
				t.Store(asked, 0, Sequential)
			}
			t.Write(guarded, t.Read(guarded)+1)
			t.Store(word, open, o["open"])
		}
		t.Store(asked, 1, Sequential) // who is inside by then leaves without being asked
	})
}

func TestGate(t *testing.T) {
	try(t, gatePoints, func(p *Program, o orders) { gate(p, o, false) })
}

// TestGateAsked has threads in C that stay inside until Go asks them to leave: Go gets in, whoever
// is there.
func TestGateAsked(t *testing.T) {
	try(t, gatePoints, func(p *Program, o orders) { gate(p, o, true) })
}

// lockPoints are those of the lock of a window's target, which operations that must be atomic take.
var lockPoints = []point{
	{name: "lock", file: "cmd/libmpi/fastwindow.c", code: "atomic_compare_exchange_strong_explicit(t->lock, &none, 1, memory_order_acquire, memory_order_relaxed)", order: Acquire, less: Relaxed},
	{name: "unlock", file: "cmd/libmpi/fastwindow.c", code: "STORE(*t->lock, 0);", order: Release, less: Relaxed},
}

func TestLock(t *testing.T) {
	try(t, lockPoints, func(p *Program, o orders) {
		word, sum := p.Word("lock", 0), p.Data("sum")
		for range 3 {
			p.Thread("origin", func(t *Thread) {
				for !t.CompareAndSwap(word, 0, 1, o["lock"]) {
					t.Await(word, Relaxed, is(0))
				}
				t.Write(sum, t.Read(sum)+1)
				t.Store(word, 0, o["unlock"])
			})
		}
	})
}
