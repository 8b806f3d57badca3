package weakmem

import "testing"

// entryPoints are those of a ring of entries between a proc and a plugin (data plane "rdma"), whose
// reader sleeps where it is empty, and of what the entries lend.
var entryPoints = []point{
	{name: "head", file: "plugins/sdk/support/rdma/entry.go", code: "p.b.head.Swap(p.head)", order: Sequential, less: AcquireRelease},
	{name: "see head", file: "plugins/sdk/support/rdma/entry.go", code: "head := c.b.head.Load()", order: Acquire, less: Relaxed},
	{name: "tail", file: "plugins/sdk/support/rdma/entry.go", code: "c.b.tail.Store(c.tail)", order: Release, less: Relaxed},
	{name: "see tail", file: "plugins/sdk/support/rdma/entry.go", code: "tail := p.b.tail.Load()", order: Acquire, less: Relaxed},
	{name: "sleeps", file: "plugins/sdk/support/rdma/link.go", code: "l.in.b.readerSleeps.Swap(1)", order: Sequential, less: AcquireRelease},
	{name: "look again", file: "plugins/sdk/support/rdma/entry.go", code: "c.b.head.Load() != c.tail", order: Sequential, less: Acquire},
	{name: "see reader", file: "plugins/sdk/support/rdma/link.go", code: "s := &l.out.b.readerSleeps; s.Load() != 0", order: Sequential, less: Acquire},
}

// entries has a proc that lends memory by entries in one place of a ring, and a plugin that reads it
// and says so by the head of the other ring. Then the proc changes the memory.
func entries(p *Program, o orders, early bool) {
	const items = 2
	head, tail, done := p.Word("head", 0), p.Word("tail", 0), p.Word("completions", 0)
	place, memory := p.Data("entry"), p.DataOf("memory", items)
	plugin := newSleeper(p, "plugin")
	p.Thread("proc", func(t *Thread) {
		for i := range uint64(items) {
			if i > 0 {
				t.Await(tail, o["see tail"], atLeast(i)) // in the sources the ring would be full, and the link ends
			}
			t.Write(memory[i], i+1)
			t.Write(place, i+1)
			t.Exchange(head, i+1, o["head"])
			if t.Load(plugin.word, o["see reader"]) != 0 && t.CompareAndSwap(plugin.word, 1, 0, Sequential) {
				t.Ring(plugin.bell)
			}
		}
		for i := range uint64(items) {
			if !early {
				t.Await(done, o["see head"], atLeast(i+1))
			}
			t.Write(memory[i], 9)
		}
	})
	p.Thread("plugin", func(t *Thread) {
		for i := range uint64(items) {
			for t.Load(head, o["see head"]) <= i {
				t.Exchange(plugin.word, 1, o["sleeps"])
				if t.Load(head, o["look again"]) > i {
					t.Store(plugin.word, 0, Sequential)
					continue
				}
				t.Sleep(plugin.bell)
			}
			if v := t.Read(place); v != i+1 {
				t.Failf("entry %d is %d", i+1, v)
			}
			t.Store(tail, i+1, o["tail"])
			if v := t.Read(memory[i]); v != i+1 {
				t.Failf("what entry %d lends is %d", i+1, v)
			}
			t.Exchange(done, i+1, o["head"])
		}
	})
}

func TestEntries(t *testing.T) {
	try(t, entryPoints, func(p *Program, o orders) { entries(p, o, false) })
	finds(t, "memory is changed before it is given back", "memory", func(p *Program) { entries(p, ordersOf(entryPoints), true) })
}
