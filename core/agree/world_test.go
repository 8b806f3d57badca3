package agree

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

// setup is a group, and what its members do.
type setup struct {
	config  Config // without Me
	rounds  int    // agreements that each member begins
	ahead   int    // how many it begins before it has returned from the one before
	failing int    // how many members may fail
	victims []int  // who may; nil: all
	acks    bool   // members acknowledge the failures that they know when they begin
}

// world is a group with all messages that are under way.
type world struct {
	setup
	members  []*Member
	dead     []bool
	failures int
	flying   []flight
	results  [][]*Decision // by member and agreement
	sent     int           // messages so far
}

// flight is a message under way. One of a member that has failed may never arrive, or arrive after
// its failure is known at its destination.
type flight struct {
	from, to int
	data     []byte
}

// move is something that can happen.
type move struct {
	what     string // begin, fail, notice, arrive
	who      int
	about    int // notice: who has failed
	delivery flight
}

func (m move) String() string {
	switch m.what {
	case "notice":
		return fmt.Sprintf("%d learns of %d", m.who, m.about)
	case "arrive":
		in, _ := parse(m.delivery.data, 64)
		return fmt.Sprintf("%d gets %d of %d from %d", m.delivery.to, in.kind, in.sequence, m.delivery.from)
	}
	return fmt.Sprintf("%s %d", m.what, m.who)
}

func newWorld(s setup) *world {
	w := &world{setup: s, dead: make([]bool, s.config.Size), results: make([][]*Decision, s.config.Size)}
	for i := range s.config.Size {
		c := s.config
		c.Me = i
		m, err := New(c)
		if err != nil {
			panic(err)
		}
		w.members = append(w.members, m)
		w.results[i] = make([]*Decision, s.rounds)
	}
	return w
}

func (w *world) copy() *world {
	c := *w
	c.members = make([]*Member, len(w.members))
	c.dead, c.flying = slices.Clone(w.dead), slices.Clone(w.flying)
	c.results = make([][]*Decision, len(w.results))
	for i, m := range w.members {
		if w.dead[i] {
			continue
		}
		d := *m
		d.failed, d.agreements = m.failed.clone(), make(map[uint64]*agreement, len(m.agreements))
		for sequence, a := range m.agreements {
			b := *a
			b.open = a.open.clone()
			d.agreements[sequence] = &b
		}
		c.members[i], c.results[i] = &d, slices.Clone(w.results[i])
	}
	return &c
}

// living returns the members that have not failed.
func (w *world) living() (list []int) {
	for i, dead := range w.dead {
		if !dead {
			list = append(list, i)
		}
	}
	return list
}

// moves lists what can happen now. Those at the end need not happen: failures, and arrivals of
// messages of failed members.
func (w *world) moves() (list []move, optional int) {
	living := w.living()
	for _, i := range living {
		m := w.members[i]
		if m.next < uint64(w.rounds) && m.next <= m.low+uint64(w.ahead) {
			list = append(list, move{what: "begin", who: i})
		}
		for r, dead := range w.dead {
			if dead && !m.failed.Has(r) {
				list = append(list, move{what: "notice", who: i, about: r})
			}
		}
	}
	var late []move
	for i, f := range w.flying {
		v := move{what: "arrive", who: f.to, delivery: f}
		switch {
		case i > 0 && compare(f, w.flying[i-1]) == 0:
		case w.dead[f.from]:
			late = append(late, v)
		default:
			list = append(list, v)
		}
	}
	if w.failures < w.failing && len(living) > 1 {
		for _, i := range living {
			if w.victims == nil || slices.Contains(w.victims, i) {
				late = append(late, move{what: "fail", who: i})
			}
		}
	}
	return append(list, late...), len(late)
}

func compare(a, b flight) int {
	return bytes.Compare(append([]byte{byte(a.from), byte(a.to)}, a.data...), append([]byte{byte(b.from), byte(b.to)}, b.data...))
}

// do makes a move, and checks what must always hold.
func (w *world) do(v move) error {
	m := w.members[v.who]
	switch v.what {
	case "begin":
		c := Contribution{Flags: ^uint64(0) &^ (1 << v.who), Max: [2]uint64{uint64(v.who), m.next * uint64(w.config.Size-v.who)}}
		if w.acks {
			c.Acked = m.failed
		}
		if _, err := m.Begin(c); err != nil {
			return err
		}
	case "fail":
		w.dead[v.who] = true
		w.failures++
		w.members[v.who], w.results[v.who] = nil, nil
		w.flying = slices.DeleteFunc(w.flying, func(f flight) bool { return f.to == v.who })
		return nil
	case "notice":
		if err := m.Failed(v.about); err != nil {
			return err
		}
	case "arrive":
		i := slices.IndexFunc(w.flying, func(f flight) bool { return compare(f, v.delivery) == 0 })
		w.flying = slices.Delete(w.flying, i, i+1)
		if err := m.Receive(v.delivery.from, v.delivery.data); err != nil {
			return err
		}
	}
	return w.take(v.who)
}

// take moves on what a member has to say.
func (w *world) take(who int) error {
	m := w.members[who]
	for out, ok := m.Next(); ok; out, ok = m.Next() {
		if m.failed.Has(out.To) || out.To == who {
			return fmt.Errorf("member %d sends to %d, knowing of failures of %v", who, out.To, m.failed)
		}
		w.sent++
		if w.dead[out.To] {
			continue
		}
		f := flight{who, out.To, out.Data}
		at, _ := slices.BinarySearchFunc(w.flying, f, compare)
		w.flying = slices.Insert(w.flying, at, f)
	}
	m.messages = nil
	for d, ok := m.Decided(); ok; d, ok = m.Decided() {
		if err := w.decided(who, d); err != nil {
			return err
		}
	}
	m.decisions = nil
	return nil
}

// decided checks a result.
func (w *world) decided(who int, d Decision) error {
	if w.results[who][d.Sequence] != nil {
		return fmt.Errorf("member %d has a second result", who)
	}
	w.results[who][d.Sequence] = &d
	for i := range w.config.Size {
		counted := d.Flags>>i&1 == 0
		switch {
		case !counted && !d.Failed.Has(i):
			return fmt.Errorf("member %d has %v without member %d, which has not failed", who, d, i)
		case d.Failed.Has(i) && !w.dead[i]:
			return fmt.Errorf("member %d has %v, member %d lives", who, d, i)
		case counted && !w.dead[i] && w.members[i].next <= d.Sequence:
			return fmt.Errorf("member %d has %v with member %d, which has not begun", who, d, i)
		case counted && d.Max[0] < uint64(i) || counted && d.Max[1] < d.Sequence*uint64(w.config.Size-i):
			return fmt.Errorf("member %d has %v, too little for member %d", who, d, i)
		}
	}
	for _, i := range w.living() {
		if a := w.members[i].agreements[d.Sequence]; a != nil && a.begun && !d.Acked.within(a.own.acked) {
			return fmt.Errorf("member %d has %v, member %d has acknowledged %v", who, d, i, a.own.acked)
		}
		if o := w.results[i][d.Sequence]; o != nil && !same(*o, d) {
			return fmt.Errorf("member %d has %v, member %d has %v", who, d, i, *o)
		}
	}
	return nil
}

func same(a, b Decision) bool {
	return a.Sequence == b.Sequence && a.Flags == b.Flags && a.Max == b.Max && a.Failed.Equal(b.Failed) && a.Acked.Equal(b.Acked)
}

// over checks the state in which nothing happens any more.
func (w *world) over() error {
	for _, i := range w.living() {
		for sequence, d := range w.results[i] {
			if d == nil {
				return fmt.Errorf("member %d has no result of agreement %d, and nothing happens any more", i, sequence)
			}
		}
		if n := len(w.members[i].agreements); n > w.ahead+1 {
			return fmt.Errorf("member %d remembers %d agreements at the end, of which %d can be open", i, n, w.ahead+1)
		}
	}
	return nil
}

// key is the state as bytes.
func (w *world) key(b []byte) []byte {
	word := func(n uint64) { b = binary.AppendUvarint(b, n) }
	flag := func(is ...bool) {
		n := uint64(0)
		for i, f := range is {
			if f {
				n |= 1 << i
			}
		}
		word(n)
	}
	set := func(s Set) {
		var n uint64
		if len(s.words) > 0 {
			n = s.words[0]
		}
		word(n)
	}
	val := func(v value) {
		word(^v.flags)
		word(v.max[0])
		word(v.max[1])
		word(v.low)
		set(v.failed)
		set(v.acked)
	}
	flag(w.dead...)
	for i, m := range w.members {
		if w.dead[i] {
			continue
		}
		set(m.failed)
		word(m.next)
		word(m.floor)
		word(uint64(len(m.agreements)))
		for _, sequence := range slices.Sorted(maps.Keys(m.agreements)) {
			a := m.agreements[sequence]
			word(sequence)
			flag(a.begun, a.some, a.asked, a.decided)
			word(uint64(a.told + 1))
			set(a.open)
			val(a.own)
			val(a.all)
		}
		for _, d := range w.results[i] {
			flag(d != nil)
			if d != nil {
				val(value{flags: d.Flags, max: d.Max, failed: d.Failed, acked: d.Acked})
			}
		}
	}
	for _, f := range w.flying {
		b = append(b, byte(f.from), byte(f.to))
		b = append(b, f.data...)
	}
	return b
}
