package match

import (
	"slices"
	"testing"

	"github.com/openimpi/impi/core/wire"
)

type item struct {
	Entry[*item]
	n int
}

func newItem(n int) *item {
	i := &item{n: n}
	i.Value = i
	return i
}

func key(src, tag int) Key { return Key{Source: wire.CommRank(src), Tag: wire.Tag(tag)} }

func TestPostedOrderAcrossClasses(t *testing.T) {
	for _, filler := range []int{0, 100} { // walked, and looked up
		var p Posted[*item]
		for i := range filler {
			p.Add(&newItem(1000+i).Entry, Key{Context: 9, Tag: wire.Tag(i)})
		}
		patterns := []Key{key(-1, -1), key(3, 7), key(-1, 7), key(3, -1), key(3, 7), key(-1, -1)}
		for i, k := range patterns {
			p.Add(&newItem(i).Entry, k)
		}
		p.Add(&newItem(99).Entry, key(4, 7))
		for i := range patterns {
			if v, ok := p.Match(key(3, 7)); !ok || v.n != i {
				t.Fatalf("filler %d: message %d went to receive %+v", filler, i, v)
			}
		}
		if v, ok := p.Match(key(3, 7)); ok {
			t.Fatalf("receive %d has another source", v.n)
		}
		if p.Len() != filler+1 {
			t.Fatalf("%d left", p.Len())
		}
	}
}

func TestPostedRemove(t *testing.T) {
	var p Posted[*item]
	items := make([]*item, 50)
	for i := range items {
		items[i] = newItem(i)
		p.Add(&items[i].Entry, key(1, 1))
	}
	for i, it := range items {
		if i%2 == 0 {
			p.Remove(&it.Entry)
		}
		if it.Queued() != (i%2 == 1) {
			t.Fatalf("item %d: queued %v", i, it.Queued())
		}
	}
	for i := 1; i < len(items); i += 2 {
		if v, ok := p.Match(key(1, 1)); !ok || v.n != i {
			t.Fatalf("got %+v, want %d", v, i)
		}
	}
	if _, ok := p.Match(key(1, 1)); ok || p.Len() != 0 {
		t.Fatal("not empty")
	}
}

func TestMisuseOfEntries(t *testing.T) {
	var p Posted[*item]
	it := newItem(0)
	p.Add(&it.Entry, key(0, 0))
	mustPanic(t, "added twice", func() { p.Add(&it.Entry, key(0, 0)) })
	p = Posted[*item]{}
	it = newItem(0)
	mustPanic(t, "removed from outside", func() { p.Remove(&it.Entry) })
}

func mustPanic(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s: no panic", what)
		}
	}()
	f()
}

// A message that has a wildcard's value as rank or tag is no wildcard.
func TestWildcardValuesInMessages(t *testing.T) {
	for _, filler := range []int{0, 100} {
		var p Posted[*item]
		for i := range filler {
			p.Add(&newItem(1000+i).Entry, Key{Context: 9, Tag: wire.Tag(i)})
		}
		p.Add(&newItem(1).Entry, key(3, 7))
		for _, k := range []Key{key(-1, 7), key(3, -1), key(-1, -1)} {
			if v, ok := p.Match(k); ok {
				t.Errorf("message %+v went to receive %d", k, v.n)
			}
		}
		p.Add(&newItem(2).Entry, key(-1, 7))
		if v, ok := p.Match(key(-1, 7)); !ok || v.n != 2 {
			t.Errorf("not even a wildcard gets it: %+v", v)
		}
	}
}

func TestIteration(t *testing.T) {
	var p Posted[*item]
	for i := range 5 {
		p.Add(&newItem(i).Entry, key(i, i))
	}
	var forward, backward []int
	for v := range p.All() {
		forward = append(forward, v.n)
		if v.n%2 == 0 {
			p.Remove(&v.Entry)
		}
	}
	for v := range p.Backward() {
		backward = append(backward, v.n)
	}
	if !slices.Equal(forward, []int{0, 1, 2, 3, 4}) || !slices.Equal(backward, []int{3, 1}) {
		t.Errorf("forward %v, backward %v", forward, backward)
	}
	for range p.All() {
		break
	}
	for range p.Backward() {
		break
	}
}

// stepsEach is the most entries and slots that one operation may look at, on
// average, however many there are.
const stepsEach = 12

func TestManyPostedMatchInConstantTime(t *testing.T) {
	const n = 10000
	for _, wild := range []bool{false, true} {
		var p Posted[*item]
		items := make([]item, n)
		for i := range items {
			items[i].Value, items[i].n = &items[i], i
			p.Add(&items[i].Entry, key(i%100, i/100))
		}
		if wild {
			// Receives of the other classes must not slow down exact ones.
			for i := range 3 * n {
				p.Add(&newItem(n+i).Entry, []Key{{5, -1, wire.Tag(i)}, {5, wire.CommRank(i), -1}, {5, -1, -1}}[i%3])
			}
		}
		operations := p.Len() + n     // the table may have been made by Add, or by the first Match
		for i := n - 1; i >= 0; i-- { // the worst order for a list
			if v, ok := p.Match(key(i%100, i/100)); !ok || v.n != i {
				t.Fatalf("message %d went to %+v", i, v)
			}
		}
		if each := float64(p.Steps()) / float64(operations); each > stepsEach {
			t.Errorf("wild %v: %.1f steps for an operation", wild, each)
		}
	}
}

// Messages that come in the order of their receives never need the table.
func TestPostedInOrderTakeOneStep(t *testing.T) {
	const n = 1000
	var p Posted[*item]
	for i := range n {
		p.Add(&newItem(i).Entry, key(3, 4))
	}
	for i := range n {
		if v, ok := p.Match(key(3, 4)); !ok || v.n != i {
			t.Fatalf("message %d went to %+v", i, v)
		}
	}
	if p.Steps() != n {
		t.Errorf("%d steps for %d messages", p.Steps(), n)
	}
}

func TestPostedDoesNotAllocate(t *testing.T) {
	var p Posted[*item]
	items := make([]*item, 64)
	for i := range items {
		items[i] = newItem(i)
	}
	round := func() {
		for i, it := range items {
			p.Add(&it.Entry, key(i, i))
		}
		for i := range items {
			p.Match(key(i, i))
		}
	}
	round()
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkPosted(b *testing.B) {
	for _, bc := range []struct {
		name string
		n    int
	}{{"1", 1}, {"8", 8}, {"10000", 10000}} {
		b.Run(bc.name, func(b *testing.B) {
			var p Posted[*item]
			for i := range bc.n - 1 {
				p.Add(&newItem(i).Entry, key(i, 1))
			}
			it := newItem(0)
			for b.Loop() {
				p.Add(&it.Entry, key(0, 2))
				p.Match(key(0, 2))
			}
		})
	}
}

func TestPostedCountsOwn(t *testing.T) {
	var p Posted[*item]
	own, other := newItem(0), newItem(1)
	own.Own = true
	p.Add(&own.Entry, Key{Context: 9, Source: AnySource, Tag: 1})
	p.Add(&other.Entry, key(1, 1))
	if p.Own() != 1 || p.Len() != 2 {
		t.Fatalf("%d of %d receives are the library's own", p.Own(), p.Len())
	}
	if v, ok := p.Match(Key{Context: 9, Source: 4, Tag: 1}); !ok || v != own || p.Own() != 0 || p.Len() != 1 {
		t.Fatalf("%v was matched, and %d of %d receives are the library's own", v, p.Own(), p.Len())
	}
}
