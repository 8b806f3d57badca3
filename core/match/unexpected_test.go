package match

import (
	"testing"

	"github.com/openimpi/impi/core/wire"
)

func take(u *Unexpected[*item], k Key) int {
	v, ok := u.Find(k)
	if !ok {
		return -1
	}
	u.Remove(&v.Entry)
	return v.n
}

func TestUnexpectedOrder(t *testing.T) {
	for _, filler := range []int{0, 100} { // walked, and looked up
		var u Unexpected[*item]
		for i := range filler {
			u.Add(&newItem(1000+i).Entry, Key{Context: 9, Tag: wire.Tag(i)})
		}
		for i, k := range []Key{key(1, 1), key(2, 1), key(1, 2), key(1, 1), key(2, 2), key(1, 1)} {
			u.Add(&newItem(i).Entry, k)
		}
		for _, c := range []struct {
			k    Key
			want int
		}{
			{key(-1, 2), 2}, {key(2, -1), 1}, {key(-1, -1), 0}, {key(1, 1), 3}, {key(-1, 1), 5}, {key(1, 1), -1}, {key(-1, -1), 4}, {key(-1, -1), -1},
		} {
			if got := take(&u, c.k); got != c.want {
				t.Errorf("filler %d: pattern %+v got %d, want %d", filler, c.k, got, c.want)
			}
		}
		if u.Len() != filler {
			t.Errorf("%d left", u.Len())
		}
	}
}

func TestFindLeavesTheMessage(t *testing.T) {
	var u Unexpected[*item]
	u.Add(&newItem(4).Entry, key(1, 1))
	for range 2 {
		if v, ok := u.Find(key(-1, 1)); !ok || v.n != 4 {
			t.Fatalf("got %+v", v)
		}
	}
	if _, ok := u.Find(Key{Context: 1, Source: 1, Tag: 1}); ok {
		t.Error("another context's message")
	}
}

func TestManyUnexpectedMatchInConstantTime(t *testing.T) {
	const n = 10000
	for name, pattern := range map[string]func(i int) Key{
		"exact":      func(i int) Key { return key(i%100, i/100) },
		"any source": func(i int) Key { return key(-1, i) },
		"any tag":    func(i int) Key { return key(i, -1) },
		"any":        func(i int) Key { return key(-1, -1) },
	} {
		var u Unexpected[*item]
		for i := range n {
			k := key(i, i)
			if name == "exact" {
				k = pattern(i)
			}
			u.Add(&newItem(i).Entry, k)
		}
		before := u.Steps()
		for j := range n {
			i := n - 1 - j // the worst order for a list
			if name == "any" {
				i = j
			}
			if got := take(&u, pattern(i)); got != i {
				t.Fatalf("%s: got %d, want %d", name, got, i)
			}
		}
		if each := float64(u.Steps()-before) / n; each > 2*stepsEach {
			t.Errorf("%s: %.1f steps for a match", name, each)
		}
	}
}

func TestUnexpectedDoesNotAllocate(t *testing.T) {
	var u Unexpected[*item]
	items := make([]*item, 64)
	for i := range items {
		items[i] = newItem(i)
	}
	round := func() {
		for i, it := range items {
			u.Add(&it.Entry, key(i, i))
		}
		for i := range items {
			take(&u, []Key{key(i, i), key(-1, i), key(i, -1), key(-1, -1)}[i%4])
		}
	}
	round()
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
