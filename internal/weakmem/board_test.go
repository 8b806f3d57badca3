package weakmem

import (
	"fmt"
	"testing"
)

// boardPoints are those of operations on a board (core/board), in C, and how a member sleeps, in
// Go.
var boardPoints = []point{
	{name: "arrive", file: "cmd/libmpi/onboard.h", code: "static inline void arrive(struct op *o) { atomic_exchange(progress(o->b, o->b->me), o->step); }", order: Sequential, less: Relaxed},
	{name: "tell", file: "cmd/libmpi/onboard.h", code: "atomic_exchange(word, o->step);", order: Sequential, less: AcquireRelease},
	{name: "give back", file: "cmd/libmpi/onboard.h", code: "atomic_exchange(progress(o->b, o->b->me), o->step | READ);", order: Sequential, less: Relaxed},
	{name: "see", file: "cmd/libmpi/onboard.h", code: "if (LOAD(*word) >= want)", order: Acquire, less: Relaxed},
	{name: "see before sleep", file: "core/board/member.go", code: "if at.Load() < w.want {", order: Sequential, less: Acquire},
	{name: "look at sleepers", file: "cmd/libmpi/onboard.h", code: "return atomic_load((_Atomic uint64_t *)b->slot) & ~((uint64_t)1 << b->me);", order: Sequential, less: Acquire},
	{name: "sleep", file: "core/board/member.go", code: "p.b.word(p.base).Or(1 << p.me)", order: Sequential, less: AcquireRelease},
}

// laterPoint is how a nonblocking start posts where its program goes on at once.
var laterPoint = point{name: "tell", file: "cmd/libmpi/onboard.h", code: "STORE(*word, o->step);", order: Release, less: Relaxed}

// onBoard is what a model of the board is about.
type onBoard struct {
	members, operations int
	rooted              bool // member 0 alone posts, as in Bcast; else all do, as in Allgather
	short               bool // what is posted is read before it is known, so nobody gives it back
	sleeping            bool
	later               bool // they post by a store that others see later
	rechecks            bool // who sleeps looks again by itself
	lookFirst           bool // a fault: for sleepers, before it posts
	noVacancy           bool // a fault: it posts where others may still read
}

const boardEntries = 2

// member is one of the members.
type member struct {
	onBoard
	o        orders
	me       int
	progress []Word
	entries  [][]Word
	data     [][]Data
	asleep   Word
	bells    []Bell
}

func (x onBoard) model(p *Program, o orders) {
	m := member{onBoard: x, o: o, progress: p.Words("progress", x.members), asleep: p.Word("asleep", 0)}
	for i := range x.members {
		m.entries = append(m.entries, p.Words(fmt.Sprintf("entry of %d,", i), boardEntries))
		m.data = append(m.data, p.DataOf(fmt.Sprintf("data of %d,", i), boardEntries))
		m.bells = append(m.bells, p.Bell(fmt.Sprintf("bell of %d", i)))
	}
	for i := range x.members {
		p.Thread(fmt.Sprintf("member %d", i), func(t *Thread) {
			m := m
			m.me = i
			for k := range x.operations {
				m.operate(t, k)
			}
		})
	}
}

// operate does operation k. A step is even, and odd once its member has read what it needs.
func (m member) operate(t *Thread, k int) {
	step, entry := uint64(k+1)*2, k%boardEntries
	t.Exchange(m.progress[m.me], step, m.o["arrive"])
	if m.posts(m.me) {
		m.post(t, step, entry)
	}
	for _, i := range m.others() {
		if !m.posts(i) {
			continue
		}
		m.wait(t, m.entries[i][entry], step)
		if v := t.Read(m.data[i][entry]); v != step {
			t.Failf("in step %d member %d reads %d of %d", step, m.me, v, i)
		}
	}
	if !m.short {
		t.Exchange(m.progress[m.me], step|1, m.o["give back"])
	}
	if !m.lookFirst {
		m.wake(t)
	}
}

func (m member) post(t *Thread, step uint64, entry int) {
	if was := int(step) - 2*boardEntries; was > 0 && !m.noVacancy {
		for _, i := range m.others() {
			m.wait(t, m.progress[i], uint64(was|1))
		}
	}
	t.Write(m.data[m.me][entry], step)
	if m.lookFirst {
		m.wake(t)
	}
	if m.later {
		t.Store(m.entries[m.me][entry], step, m.o["tell"])
	} else {
		t.Exchange(m.entries[m.me][entry], step, m.o["tell"])
	}
	if !m.lookFirst {
		m.wake(t)
	}
}

func (m member) posts(i int) bool { return i == 0 || !m.rooted }

func (m member) others() (list []int) {
	for i := range m.members {
		if i != m.me {
			list = append(list, i)
		}
	}
	return list
}

// wake wakes the others that sleep.
func (m member) wake(t *Thread) {
	if !m.sleeping {
		return
	}
	mine := uint64(1) << m.me
	if t.Load(m.asleep, m.o["look at sleepers"])&^mine == 0 {
		return
	}
	woken := t.Change(m.asleep, Sequential, func(v uint64) uint64 { return v & mine }) &^ mine
	for _, i := range m.others() {
		if woken>>i&1 != 0 {
			t.Ring(m.bells[i])
		}
	}
}

func (m member) wait(t *Thread, w Word, want uint64) {
	if !m.sleeping || t.Choose(2, "sleep") == 0 {
		t.Await(w, m.o["see"], atLeast(want))
		return
	}
	mine := uint64(1) << m.me
	for over := false; !over; {
		t.Change(m.asleep, m.o["sleep"], func(v uint64) uint64 { return v | mine })
		if over = t.Load(w, m.o["see before sleep"]) >= want; !over {
			if m.rechecks {
				t.Await(w, m.o["see"], atLeast(want)) // by a timer, whether the bell rings or not
				over = true
			} else {
				t.Sleep(m.bells[m.me])
				over = t.Load(w, m.o["see before sleep"]) >= want
			}
		}
		t.Change(m.asleep, Sequential, func(v uint64) uint64 { return v &^ mine })
	}
}

// TestBoard has members sleep or poll, as they like.
func TestBoard(t *testing.T) {
	pair := onBoard{members: 2, operations: 1, sleeping: true}
	points := []point{boardPoints[1], boardPoints[4], boardPoints[5], boardPoints[6]}
	try(t, points, fixed(points, pair))
	pair.lookFirst = true
	finds(t, "looks for sleepers first", "for ever wait", func(p *Program) { pair.model(p, ordersOf(boardPoints)) })
}

// TestBoardReused has entries written again and again, by members that poll.
func TestBoardReused(t *testing.T) {
	for _, x := range []onBoard{
		{members: 2, operations: 5, rooted: true},
		{members: 2, operations: 5, rooted: true, short: true},
		{members: 3, operations: 3, rooted: true},
	} {
		points := []point{boardPoints[0], boardPoints[1], boardPoints[3]}
		points[1].less = Relaxed
		if !x.short {
			points = append(points, boardPoints[2])
			points[0].slack = "what it makes known is passed on with the next exchange of the same word"
		}
		try(t, points, fixed(points, x))
		x.noVacancy = true
		finds(t, "does not wait until there is room", "data of 0, 0", func(p *Program) { x.model(p, ordersOf(boardPoints)) })
	}
	x := onBoard{members: 2, operations: 3}
	if _, err := Run(func(p *Program) { x.model(p, ordersOf(boardPoints)) }); err != nil {
		t.Error(err)
	}
}

// TestBoardLater has members that post by a plain store: they miss who has just gone to sleep, so
// that all of them look again by themselves.
func TestBoardLater(t *testing.T) {
	x := onBoard{members: 2, operations: 1, sleeping: true, later: true, rechecks: true}
	points := []point{laterPoint}
	try(t, points, fixed(points, x))
	x.rechecks = false
	o := ordersOf(boardPoints)
	o["tell"] = Release
	finds(t, "nobody looks again", "for ever wait", func(p *Program) { x.model(p, o) })
}

// fixed is a model of which only some of the orders change; the others are as they are.
func fixed(points []point, x onBoard) func(*Program, orders) {
	return func(p *Program, some orders) {
		o := ordersOf(boardPoints)
		for _, q := range points {
			o[q.name] = some[q.name]
		}
		x.model(p, o)
	}
}
