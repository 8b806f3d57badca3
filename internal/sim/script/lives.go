package script

import (
	"cmp"
	"fmt"
	"slices"
)

// never is the step of an event that does not happen.
const never = -1

type life struct {
	m                                        *Message
	sendStart, sendDone, recvStart, recvDone int
	cancel                                   int // step of the cancel
	family                                   *family
	epoch                                    int // epoch of its receiver in its communicator
}

func (l *life) start(s Side) *int {
	if s == SendSide {
		return &l.sendStart
	}
	return &l.recvStart
}

func (l *life) done(s Side) *int {
	if s == SendSide {
		return &l.sendDone
	}
	return &l.recvDone
}

// family is the messages of one receiver, communicator and epoch that the same receives may get.
// Usually those receives have one pattern.
type family struct {
	pattern pattern
	mixed   bool    // it has receives of different patterns
	sends   []*life // in the order in which they start
	recvs   []*life // in the order in which they start
}

// wild reports whether any receive of the family may get any of its messages, which then come from
// several senders. Otherwise there is one sender, whose messages arrive in order: whatever the
// timing, each is received by the first receive that admits it and has no earlier message.
func (f *family) wild() bool {
	return !f.mixed && f.pattern.source == anySource &&
		slices.ContainsFunc(f.sends, func(l *life) bool { return l.m.From != f.sends[0].m.From })
}

func (f *family) posted() int { return f.recvs[len(f.recvs)-1].recvStart }

type lives struct {
	p        *Program
	byID     map[int]*life
	list     []*life // in the order of the program
	families []*family
}

// newLives computes the lives of all messages. It fails if a side is started or completed too
// often, in the wrong order, or not at all.
func newLives(p *Program) (*lives, error) {
	a := &lives{p: p, byID: make(map[int]*life, len(p.Messages))}
	for i := range p.Messages {
		m := &p.Messages[i]
		l := &life{m: m, sendStart: never, sendDone: never, recvStart: never, recvDone: never, cancel: never}
		if m.ID <= 0 || a.byID[m.ID] != nil {
			return nil, fmt.Errorf("message %d is there twice, or is not positive", m.ID)
		}
		a.byID[m.ID] = l
		a.list = append(a.list, l)
	}
	for i, s := range p.Steps {
		for _, id := range messages(s) {
			if a.byID[id] == nil {
				return nil, a.fault(i, fmt.Errorf("there is no message %d", id))
			}
		}
		if err := a.follow(i, s); err != nil {
			return nil, a.fault(i, err)
		}
	}
	for _, l := range a.list {
		if l.sendDone == never || l.recvDone == never {
			return nil, fmt.Errorf("message %d is not sent and received to the end", l.m.ID)
		}
	}
	a.epochs()
	a.group()
	return a, nil
}

func (a *lives) fault(step int, err error) error {
	return fmt.Errorf("step %d, %s: %w", step+1, lineOf(a.p.Steps[step]), err)
}

func (a *lives) follow(i int, s Step) error {
	switch s := s.(type) {
	case Start:
		return a.begin(i, s)
	case Exchange:
		return a.exchange(i, s)
	case Wait:
		return a.wait(i, s)
	case Cancel:
		return a.cancel(i, s)
	}
	return nil
}

func (a *lives) begin(i int, s Start) error {
	l := a.byID[s.Msg]
	if *l.start(s.Side) != never {
		return fmt.Errorf("%s is started twice", s.Req)
	}
	*l.start(s.Side) = i
	if s.Blocking {
		*l.done(s.Side) = i
	}
	return nil
}

func (a *lives) exchange(i int, s Exchange) error {
	var busy [2][]int
	for _, id := range s.Msgs {
		for _, side := range []Side{SendSide, RecvSide} {
			if err := a.begin(i, Start{Req{id, side}, true}); err != nil {
				return err
			}
			rank := a.byID[id].m.rank(side)
			if slices.Contains(busy[side], rank) {
				return fmt.Errorf("rank %d has two messages of one side", rank)
			}
			busy[side] = append(busy[side], rank)
		}
	}
	return nil
}

func (a *lives) wait(i int, s Wait) error {
	for _, q := range s.Reqs {
		l := a.byID[q.Msg]
		switch {
		case l.m.rank(q.Side) != s.Rank:
			return fmt.Errorf("%s is not of rank %d", q, s.Rank)
		case *l.start(q.Side) == never || *l.done(q.Side) != never:
			return fmt.Errorf("%s is not under way", q)
		}
		*l.done(q.Side) = i
	}
	return nil
}

func (a *lives) cancel(i int, s Cancel) error {
	l := a.byID[s.Msg]
	switch {
	case *l.start(s.Side) == never || *l.done(s.Side) != never:
		return fmt.Errorf("%s is not under way", s.Req)
	case l.cancel != never:
		return fmt.Errorf("message %d is cancelled twice", s.Msg)
	case s.Side == SendSide && l.recvDone != never:
		return fmt.Errorf("message %d has been received", s.Msg)
	}
	l.cancel = i
	*l.done(s.Side), l.recvDone = i, i
	if l.recvStart == never {
		l.recvStart = i
	}
	return nil
}

// receiver is where messages are matched.
type receiver struct {
	comm string
	rank int
}

// epochs counts, for each receiver, the barriers of its communicator at which nothing of it is
// under way: messages and receives on different sides of such a barrier cannot match.
func (a *lives) epochs() {
	barriers := map[string][]int{}
	for i, s := range a.p.Steps {
		if c, ok := s.(Collective); ok && c.Call == Barrier {
			barriers[c.Comm] = append(barriers[c.Comm], i)
		}
	}
	at := map[receiver][]*life{}
	for _, l := range a.list {
		k := receiver{l.m.Comm, l.m.To}
		at[k] = append(at[k], l)
	}
	for k, list := range at {
		for _, b := range barriers[k.comm] {
			if slices.ContainsFunc(list, func(l *life) bool { return l.spans(b) }) {
				continue
			}
			for _, l := range list {
				if l.recvDone > b {
					l.epoch++
				}
			}
		}
	}
}

func (l *life) spans(step int) bool { return min(l.sendStart, l.recvStart) < step && step < l.recvDone }

// where is a receiver during an epoch.
type where struct {
	receiver
	epoch int
}

func (l *life) where() where { return where{receiver{l.m.Comm, l.m.To}, l.epoch} }

func (a *lives) group() {
	type key struct {
		where
		pattern
	}
	byKey := map[key]*family{}
	groups, wild := map[where][]*family{}, map[where]bool{}
	for _, l := range a.list {
		k := key{l.where(), l.m.pattern()}
		f := byKey[k]
		if f == nil {
			f = &family{pattern: k.pattern}
			byKey[k] = f
			a.families = append(a.families, f)
			groups[k.where] = append(groups[k.where], f)
			wild[k.where] = wild[k.where] || l.m.AnySource || l.m.AnyTag
		}
		l.family = f
		f.sends, f.recvs = append(f.sends, l), append(f.recvs, l)
	}
	for at := range wild {
		if wild[at] {
			unite(groups[at])
		}
	}
	a.families = slices.DeleteFunc(a.families, func(f *family) bool { return len(f.sends) == 0 })
	for _, f := range a.families {
		slices.SortStableFunc(f.sends, func(x, y *life) int { return cmp.Compare(x.sendStart, y.sendStart) })
		slices.SortStableFunc(f.recvs, func(x, y *life) int { return cmp.Compare(x.recvStart, y.recvStart) })
	}
}

// unite merges families if receives of one may get messages of another.
func unite(families []*family) {
	for changed := true; changed; {
		changed = false
		for _, f := range families {
			for _, g := range families {
				if f != g && slices.ContainsFunc(f.recvs, func(r *life) bool {
					return slices.ContainsFunc(g.sends, func(s *life) bool { return r.m.pattern().admits(s.m) })
				}) {
					f.take(g)
					changed = true
				}
			}
		}
	}
}

func (f *family) take(g *family) {
	for _, l := range g.sends {
		l.family = f
	}
	f.sends, f.recvs = append(f.sends, g.sends...), append(f.recvs, g.recvs...)
	g.sends, g.recvs = nil, nil
	f.mixed = true
}
