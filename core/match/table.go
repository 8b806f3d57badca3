package match

// table finds the list of the entries with one key in one class, by open addressing with
// linear probing. A list that becomes empty is removed at once and later slots are moved
// up, so that the table does not fill with empty lists.
type table[V any] struct {
	slots []slot[V] // length is a power of two, at most half is used
	used  int
	steps uint64
}

type slot[V any] struct {
	head, tail *Entry[V] // nil: free
	key        Key
	hash       uint32
	class      class
}

const firstSlots = 64

// find returns the index of the list's slot, or of the free slot where it would be.
func (t *table[V]) find(k Key, c class, hash uint32) (int, bool) {
	mask := uint32(len(t.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		t.steps++
		s := &t.slots[i]
		if s.head == nil {
			return int(i), false
		}
		if s.hash == hash && s.class == c && s.key == k {
			return int(i), true
		}
	}
}

// first returns the oldest entry with key k in class c, or nil.
func (t *table[V]) first(k Key, c class) *Entry[V] {
	k = k.as(c)
	i, ok := t.find(k, c, k.hash(c))
	if !ok {
		return nil
	}
	return t.slots[i].head
}

func (t *table[V]) push(e *Entry[V], c class) {
	if 2*(t.used+1) > len(t.slots) {
		t.grow()
	}
	k := e.key.as(c)
	hash := k.hash(c)
	i, ok := t.find(k, c, hash)
	s := &t.slots[i]
	if !ok {
		*s = slot[V]{head: e, tail: e, key: k, hash: hash, class: c}
		e.equal[c] = hook[V]{}
		t.used++
		return
	}
	e.equal[c] = hook[V]{prev: s.tail}
	s.tail.equal[c].next = e
	s.tail = e
}

func (t *table[V]) remove(e *Entry[V], c class) {
	prev, next := e.equal[c].prev, e.equal[c].next
	e.equal[c] = hook[V]{}
	if prev != nil {
		prev.equal[c].next = next
	}
	if next != nil {
		next.equal[c].prev = prev
	}
	if prev != nil && next != nil {
		return
	}
	k := e.key.as(c)
	i, ok := t.find(k, c, k.hash(c))
	if !ok {
		panic("match: list of a queued entry is missing")
	}
	switch s := &t.slots[i]; {
	case prev == nil && next == nil:
		t.free(uint32(i))
	case prev == nil:
		s.head = next
	default:
		s.tail = prev
	}
}

// free empties slot i and moves later slots up, so that linear probing from a list's home, the slot
// that its hash names, still finds it.
func (t *table[V]) free(i uint32) {
	mask := uint32(len(t.slots) - 1)
	for j := i; ; {
		j = (j + 1) & mask
		t.steps++
		s := &t.slots[j]
		if s.head == nil {
			break
		}
		// s may move to i if its home is not cyclically inside (i, j].
		if home := s.hash & mask; (j-home)&mask >= (j-i)&mask {
			t.slots[i] = *s
			i = j
		}
	}
	t.slots[i] = slot[V]{}
	t.used--
}

func (t *table[V]) grow() {
	old := t.slots
	t.slots = make([]slot[V], max(firstSlots, 2*len(old)))
	for i := range old {
		if s := &old[i]; s.head != nil {
			j, _ := t.find(s.key, s.class, s.hash)
			t.slots[j] = *s
		}
	}
}
