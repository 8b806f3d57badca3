// Package weakmem runs small programs of several threads in every way in which a machine with a
// weak memory order may run them, for tests of what procs do in memory that they share. Where a
// thread may load an old value or a new one, both are tried, and so is every order of the threads.
//
// # Memory
//
// It is the release and acquire part of C11 and of arm64: all stores to a word have one order. A
// thread may load any store to it but those that it knows to be replaced. It knows of its own
// accesses, and by loading what a release store has written, with acquire, of what the storing
// thread knew. A sequential load knows of all sequential stores to its word that came before. An
// exchange finds the last store.
//
// Data, which are not atomic, must be ordered by such knowledge: two accesses of which one writes,
// and that are not, are a fault, whatever they find.
//
// Machines may do more in two ways. Stores of two threads to one word have the order here in which
// they are executed, and no load finds a store that depends on what that load finds. The code that
// is tried so far has no word to which two threads store without an exchange or a lock, and stores
// nothing before it knows what it has loaded.
package weakmem

import (
	"errors"
	"fmt"
	"iter"
	"strings"
)

// Order is the memory order of an access, as C11 has it.
type Order uint8

// The orders. A load ignores Release, a store Acquire.
const (
	Relaxed Order = iota
	Acquire
	Release
	AcquireRelease
	Sequential
)

func (o Order) acquires() bool { return o == Acquire || o >= AcquireRelease }
func (o Order) releases() bool { return o >= Release }

// Word is an atomic word in memory that all threads share, of 64 bits or fewer.
type Word struct{ i int }

// Data is memory that threads access without atomic instructions.
type Data struct{ i int }

// Bell is what a thread sleeps on in the kernel: an eventfd or a socket.
type Bell struct{ w Word }

// Limit is the most states that Run looks at.
const Limit = 4 << 20

// ErrTooLarge is the error of Run for a program with more than Limit states.
var ErrTooLarge = errors.New("the program has too many states to try all")

// Counts is how much Run has looked at: executions from the beginning, and states that differ.
type Counts struct{ Runs, States int }

// Run tries a program in all ways. Build makes it, the same each time it is called. The error has
// the steps that lead to a failure of a thread or of After, to threads that wait for ever, or to
// accesses of Data that nothing orders.
func Run(build func(*Program)) (Counts, error) {
	x := explorer{seen: make(map[[2]uint64]struct{})}
	for {
		err := x.once(build)
		x.Runs++
		x.States = len(x.seen)
		if err != nil || !x.next() {
			return x.Counts, err
		}
		if x.States > Limit {
			return x.Counts, ErrTooLarge
		}
	}
}

// explorer does a depth-first search over the alternatives of each step. It begins anew for each
// path, as a coroutine cannot be copied.
type explorer struct {
	Counts
	seen map[[2]uint64]struct{} // states whose alternatives are tried, or will be
	path []choice
}

type choice struct{ taken, of int }

// next makes path the next one to be tried; there is none if it returns false.
func (x *explorer) next() bool {
	for len(x.path) > 0 {
		if last := &x.path[len(x.path)-1]; last.taken+1 < last.of {
			last.taken++
			return true
		}
		x.path = x.path[:len(x.path)-1]
	}
	return false
}

// once runs the program along path, and from there on by the first alternatives, until it ends or
// comes to a state that was seen.
func (x *explorer) once(build func(*Program)) error {
	p := &Program{}
	build(p)
	defer p.stop()
	p.begin()
	for depth := 0; p.failure == nil; depth++ {
		n := p.alternatives()
		if n == 0 {
			return p.end()
		}
		if depth == len(x.path) {
			key := p.state()
			if _, ok := x.seen[key]; ok {
				return nil
			}
			x.seen[key] = struct{}{}
			x.path = append(x.path, choice{0, n})
		}
		p.step(x.path[depth].taken)
	}
	return p.explain(p.failure)
}

// Program is one execution of the program that is tried.
type Program struct {
	words   []word
	data    []datum
	threads []*Thread
	after   func() error
	failure error
	trace   []string
}

// word has all stores to a word, in their order; a thread's place in it is the index of the last
// that it knows.
type word struct {
	name   string
	stores []store
	seq    int // index of the last sequential one
}

type store struct {
	value uint64
	knows *knowledge // what a thread knows that loads it with acquire; nil: nothing
}

// knowledge is what a thread knows: the last store to each word that it must not fall behind, and
// how many steps of each thread came before.
type knowledge struct{ stores, steps []int }

type datum struct {
	name   string
	value  uint64
	writer int // thread; -1: none
	at     int // its step
	reads  []int
}

// Word makes a word with a value that all threads know.
func (p *Program) Word(name string, value uint64) Word {
	p.words = append(p.words, word{name: name, stores: []store{{value: value}}})
	return Word{len(p.words) - 1}
}

// Words makes several words, with 0 in them.
func (p *Program) Words(name string, n int) (list []Word) {
	for i := range n {
		list = append(list, p.Word(fmt.Sprintf("%s %d", name, i), 0))
	}
	return list
}

// Data makes data, 0 at first.
func (p *Program) Data(name string) Data {
	p.data = append(p.data, datum{name: name, writer: -1})
	return Data{len(p.data) - 1}
}

// DataOf makes several data.
func (p *Program) DataOf(name string, n int) (list []Data) {
	for i := range n {
		list = append(list, p.Data(fmt.Sprintf("%s %d", name, i)))
	}
	return list
}

// Bell makes a bell that has not rung.
func (p *Program) Bell(name string) Bell { return Bell{p.Word(name, 0)} }

// Thread adds a thread. What f does must follow from what it is given by its accesses.
func (p *Program) Thread(name string, f func(*Thread)) {
	t := &Thread{p: p, name: name, i: len(p.threads)}
	t.next, t.cancel = iter.Pull(func(yield func(access) bool) {
		t.yield = yield
		defer func() {
			if r := recover(); r != nil && r != any(stopped{}) {
				panic(r)
			}
		}()
		f(t)
	})
	p.threads = append(p.threads, t)
}

// After sets what has to hold when all threads have ended.
func (p *Program) After(f func() error) { p.after = f }

// Last returns the last value of a word, for After.
func (p *Program) Last(w Word) uint64 {
	s := p.words[w.i].stores
	return s[len(s)-1].value
}

func (p *Program) begin() {
	for i := range p.data {
		p.data[i].reads = make([]int, len(p.threads))
	}
	for _, t := range p.threads {
		t.knows = knowledge{make([]int, len(p.words)), make([]int, len(p.threads))}
	}
	for _, t := range p.threads {
		t.advance()
	}
}

func (p *Program) stop() {
	for _, t := range p.threads {
		t.cancel()
	}
}

func (p *Program) alternatives() (n int) {
	for _, t := range p.threads {
		n += len(t.possible())
	}
	return n
}

// step executes one of the alternatives of all threads.
func (p *Program) step(i int) {
	for _, t := range p.threads {
		if list := t.possible(); i < len(list) {
			t.execute(list[i])
			return
		} else {
			i -= len(list)
		}
	}
}

// end is what there is to say when no thread goes on.
func (p *Program) end() error {
	var waiting []string
	for _, t := range p.threads {
		if !t.over {
			waiting = append(waiting, t.name+": "+t.now.text(p))
		}
	}
	if len(waiting) > 0 {
		return p.explain(fmt.Errorf("for ever wait %s", strings.Join(waiting, "; ")))
	}
	if p.after == nil {
		return nil
	}
	if err := p.after(); err != nil {
		return p.explain(err)
	}
	return nil
}

func (p *Program) explain(err error) error {
	return fmt.Errorf("%w, after\n  %s", err, strings.Join(p.trace, "\n  "))
}

func (p *Program) fail(err error) {
	if p.failure == nil {
		p.failure = err
	}
}

// state is a hash of all that decides how the program can go on.
func (p *Program) state() [2]uint64 {
	h := hash{14695981039346656037, 1099511628211}
	for i := range p.words {
		w := &p.words[i]
		h.add(uint64(len(w.stores)), uint64(w.seq))
		for _, s := range w.stores {
			h.add(s.value)
			h.knowledge(s.knows)
		}
	}
	for _, t := range p.threads {
		h.add(t.heard[0], t.heard[1])
		h.knowledge(&t.knows)
	}
	for i := range p.data {
		d := &p.data[i]
		h.add(d.value, uint64(d.writer), uint64(d.at))
		for _, at := range d.reads {
			h.add(uint64(at))
		}
	}
	return h
}

// hash is two hashes, as one of 64 bits may have collisions among millions of states.
type hash [2]uint64

func (h *hash) add(values ...uint64) {
	for _, v := range values {
		h[0] = (h[0] ^ v) * 1099511628211
		h[0] ^= h[0] >> 29
		h[1] = (h[1]<<5 | h[1]>>59) + v*0x9e3779b97f4a7c15
		h[1] ^= h[1] >> 31
	}
}

func (h *hash) knowledge(k *knowledge) {
	if k == nil {
		h.add(1)
		return
	}
	for _, n := range k.stores {
		h.add(uint64(n))
	}
	for _, n := range k.steps {
		h.add(uint64(n))
	}
}
