package match

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/openimpi/impi/core/wire"
)

// Lists that come and go leave a table in which every list is found, and no
// slots in use that nobody uses.
func TestTableAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tab table[*item]
		lists := map[Key][]*item{}
		for range 400 {
			k := Key{Context: wire.ContextID(rapid.IntRange(0, 60).Draw(t, "k"))}
			if l := lists[k]; len(l) > 0 && rapid.Bool().Draw(t, "remove") {
				i := rapid.IntRange(0, len(l)-1).Draw(t, "i")
				tab.remove(&l[i].Entry, exact)
				lists[k] = append(l[:i:i], l[i+1:]...)
				if len(lists[k]) == 0 {
					delete(lists, k)
				}
			} else {
				it := newItem(0)
				it.key = k
				tab.push(&it.Entry, exact)
				lists[k] = append(lists[k], it)
			}
			if tab.used != len(lists) || 2*tab.used > len(tab.slots) {
				t.Fatalf("%d of %d slots used for %d lists", tab.used, len(tab.slots), len(lists))
			}
			for k, l := range lists {
				e := tab.first(k, exact)
				for _, it := range l {
					if e != &it.Entry {
						t.Fatalf("list %v is not in order", k)
					}
					e = e.equal[exact].next
				}
				if e != nil {
					t.Fatalf("list %v is too long", k)
				}
			}
		}
	})
}

func TestHashSpreads(t *testing.T) {
	const n = 1 << 12
	for name, k := range map[string]func(i int) Key{
		"tags":     func(i int) Key { return key(0, i) },
		"sources":  func(i int) Key { return key(i, 0) },
		"contexts": func(i int) Key { return Key{Context: wire.ContextID(2 * i)} },
		"grid":     func(i int) Key { return key(i%64, i/64) },
		"high":     func(i int) Key { return Key{Context: wire.ContextID(i) << 52} },
	} {
		buckets := make([]int, n)
		most := 0
		for i := range n {
			b := &buckets[k(i).hash(exact)&(n-1)]
			*b++
			most = max(most, *b)
		}
		if most > 12 { // about 7 for a random function
			t.Errorf("%s: %d keys in one of %d buckets", name, most, n)
		}
	}
}
