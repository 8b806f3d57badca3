package weakmem

import (
	"fmt"
	"slices"
)

// Thread is one thread of a Program: it does its accesses by these methods, each of which may find
// whatever the memory order allows.
type Thread struct {
	p    *Program
	name string
	i    int

	next   func() (access, bool)
	cancel func()
	yield  func(access) bool
	now    access // the access that it does next
	over   bool
	result uint64

	knows knowledge
	heard hash // of all that it was given
}

// stopped ends a thread whose program has ended.
type stopped struct{}

type kind uint8

const (
	load kind = iota
	put
	change
	compare
	pick
)

// access is what a thread does next.
type access struct {
	kind  kind
	w     int
	order Order
	value uint64              // put, compare: what is stored
	old   uint64              // compare: what is replaced
	wants func(uint64) bool   // load: waits until there is such a value; nil: any
	with  func(uint64) uint64 // change: what is stored for what was there
	what  string
	n     int // pick: of how many
}

func (a *access) text(p *Program) string {
	if a.kind == pick {
		return a.what
	}
	return a.what + " " + p.words[a.w].name
}

// Load returns what a word has, or had.
func (t *Thread) Load(w Word, o Order) uint64 {
	return t.do(access{kind: load, w: w.i, order: o, what: "load"})
}

// Await polls a word until it has a value that is wanted, and returns that.
func (t *Thread) Await(w Word, o Order, wanted func(uint64) bool) uint64 {
	return t.do(access{kind: load, w: w.i, order: o, wants: wanted, what: "await"})
}

// Store stores a value in a word.
func (t *Thread) Store(w Word, v uint64, o Order) {
	t.do(access{kind: put, w: w.i, order: o, value: v, what: fmt.Sprintf("store %d to", v)})
}

// Change is an atomic read-modify-write: exchange, or, and, add. It returns what the word had.
func (t *Thread) Change(w Word, o Order, f func(uint64) uint64) uint64 {
	return t.do(access{kind: change, w: w.i, order: o, with: f, what: "change"})
}

// Exchange stores a value in a word and returns what it had.
func (t *Thread) Exchange(w Word, v uint64, o Order) uint64 {
	return t.Change(w, o, func(uint64) uint64 { return v })
}

// CompareAndSwap stores a value in a word that has old, and reports whether it had.
func (t *Thread) CompareAndSwap(w Word, old, v uint64, o Order) bool {
	return t.do(access{kind: compare, w: w.i, order: o, old: old, value: v, what: fmt.Sprintf("replace %d by %d in", old, v)}) == old
}

// Choose returns each number below n in some execution.
func (t *Thread) Choose(n int, what string) int {
	return int(t.do(access{kind: pick, n: n, what: what}))
}

// Ring wakes a thread that sleeps on b, now or when it does next.
func (t *Thread) Ring(b Bell) { t.Exchange(b.w, 1, Sequential) }

// Sleep waits until b has rung, and quiets it.
func (t *Thread) Sleep(b Bell) {
	t.Await(b.w, Sequential, func(v uint64) bool { return v != 0 })
	t.Exchange(b.w, 0, Sequential)
}

// Write writes data.
func (t *Thread) Write(d Data, v uint64) {
	x := &t.p.data[d.i]
	for u, at := range x.reads {
		if u != t.i && at > t.knows.steps[u] {
			t.Failf("%s writes %s while %s may still read it", t.name, x.name, t.p.threads[u].name)
		}
	}
	t.ordered(x, "writes")
	x.value, x.writer, x.at = v, t.i, t.knows.steps[t.i]+1
	clear(x.reads)
	t.p.trace = append(t.p.trace, fmt.Sprintf("%s: write %d to %s", t.name, v, x.name))
}

// Read returns data.
func (t *Thread) Read(d Data) uint64 {
	x := &t.p.data[d.i]
	t.ordered(x, "reads")
	x.reads[t.i] = t.knows.steps[t.i] + 1
	t.p.trace = append(t.p.trace, fmt.Sprintf("%s: read %d from %s", t.name, x.value, x.name))
	return x.value
}

func (t *Thread) ordered(x *datum, does string) {
	if x.writer >= 0 && x.writer != t.i && x.at > t.knows.steps[x.writer] {
		t.Failf("%s %s %s, which %s may not have written yet", t.name, does, x.name, t.p.threads[x.writer].name)
	}
}

// Failf ends the program with an error.
func (t *Thread) Failf(format string, args ...any) {
	t.p.fail(fmt.Errorf(format, args...))
	panic(stopped{})
}

func (t *Thread) do(a access) uint64 {
	if !t.yield(a) {
		panic(stopped{})
	}
	return t.result
}

// advance runs the thread up to its next access.
func (t *Thread) advance() {
	a, ok := t.next()
	t.now, t.over = a, !ok
}

// possible returns what the next access of the thread may find: for a load the places of stores in
// their word, for others one number, and for a comparison -1 if it may succeed.
func (t *Thread) possible() (list []int) {
	switch a := &t.now; {
	case t.over:
	case a.kind == pick:
		for i := range a.n {
			list = append(list, i)
		}
	case a.kind == load:
		return t.loadable(func(v uint64) bool { return a.wants == nil || a.wants(v) })
	case a.kind == compare:
		list = t.loadable(func(v uint64) bool { return v != a.old })
		if s := t.p.words[a.w].stores; s[len(s)-1].value == a.old {
			list = append(list, -1)
		}
	default:
		list = []int{-1}
	}
	return list
}

// loadable returns the stores of the thread's word that it may load.
func (t *Thread) loadable(wanted func(uint64) bool) (list []int) {
	w := &t.p.words[t.now.w]
	from := t.knows.stores[t.now.w]
	if t.now.order == Sequential {
		from = max(from, w.seq)
	}
	for i := from; i < len(w.stores); i++ {
		if wanted(w.stores[i].value) {
			list = append(list, i)
		}
	}
	return list
}

// execute does the next access, which finds what alternative says.
func (t *Thread) execute(alternative int) {
	a := t.now
	t.knows.steps[t.i]++
	switch {
	case a.kind == pick:
		t.result = uint64(alternative)
	case alternative >= 0:
		t.result = t.loads(a.w, alternative, a.order)
	case a.kind == put:
		t.stores(a.w, a.value, a.order, nil)
	default:
		w := &t.p.words[a.w]
		last := w.stores[len(w.stores)-1]
		t.loads(a.w, len(w.stores)-1, a.order)
		v := a.value
		if a.kind == change {
			v = a.with(last.value)
		}
		t.stores(a.w, v, a.order, last.knows)
		t.result = last.value
	}
	t.heard.add(t.result)
	t.p.trace = append(t.p.trace, fmt.Sprintf("%s: %s: %d", t.name, a.text(t.p), t.result))
	t.advance()
}

func (t *Thread) loads(w, at int, o Order) uint64 {
	s := &t.p.words[w].stores[at]
	t.knows.stores[w] = max(t.knows.stores[w], at)
	if o.acquires() {
		t.knows.add(s.knows)
	}
	return s.value
}

// stores stores a value. also is what the store that it replaces made known, which an exchange
// passes on.
func (t *Thread) stores(at int, v uint64, o Order, also *knowledge) {
	w := &t.p.words[at]
	t.knows.stores[at] = len(w.stores)
	if o.releases() {
		k := knowledge{slices.Clone(t.knows.stores), slices.Clone(t.knows.steps)}
		k.add(also)
		also = &k
	}
	if o == Sequential {
		w.seq = len(w.stores)
	}
	w.stores = append(w.stores, store{v, also})
}

func (k *knowledge) add(o *knowledge) {
	if o == nil {
		return
	}
	for i, n := range o.stores {
		k.stores[i] = max(k.stores[i], n)
	}
	for i, n := range o.steps {
		k.steps[i] = max(k.steps[i], n)
	}
}
