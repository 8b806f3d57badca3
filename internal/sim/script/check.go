package script

import (
	"errors"
	"fmt"
	"slices"

	"github.com/openimpi/impi/core/mpi"
)

// ErrIllegal is wrapped by the errors of Check.
var ErrIllegal = errors.New("script: not a legal program")

// Check returns an error if a program is not legal MPI as package script understands it: it must
// not deadlock, and its results must not depend on timing and buffering, except for the choice
// among wildcard receives. The error names the step or message.
func Check(p *Program) error {
	if _, err := check(p); err != nil {
		return fmt.Errorf("%w: %w", ErrIllegal, err)
	}
	return nil
}

// Bounds of programs.
const (
	maxProcs = 4096
	maxCount = 1 << 26 // elements
)

func check(p *Program) (*lives, error) {
	if p.Procs < 1 || p.Procs > maxProcs {
		return nil, fmt.Errorf("%d ranks", p.Procs)
	}
	for i := range p.Messages {
		if err := p.Messages[i].check(p.Procs); err != nil {
			return nil, fmt.Errorf("message %d: %w", p.Messages[i].ID, err)
		}
	}
	a, err := newLives(p)
	if err != nil {
		return nil, err
	}
	for _, f := range a.families {
		if err := f.check(); err != nil {
			return nil, err
		}
	}
	for _, err := range []error{a.checkCancels(), a.checkSlots(), a.checkSteps(), a.checkReady()} {
		if err != nil {
			return nil, err
		}
	}
	return a, nil
}

func (m *Message) check(procs int) error {
	switch {
	case m.From < 0 || m.From >= procs || m.To < 0 || m.To >= procs:
		return fmt.Errorf("from %d to %d, the ranks are 0 to %d", m.From, m.To, procs-1)
	case m.Tag < 0 || m.Tag >= TagLimit:
		return fmt.Errorf("tag %d, they are 0 to %d", m.Tag, TagLimit-1)
	case m.Len < 0 || m.Len > maxCount || m.Cap < 0 || m.Cap > maxCount:
		return fmt.Errorf("%d elements into a buffer of %d", m.Len, m.Cap)
	case int(m.Kind) >= len(kinds) || m.Mode > Ready || m.By > ByImprobe:
		return errors.New("no such type, mode or way of receiving")
	case m.By != ByRecv && m.RecvSlot != 0:
		return errors.New("a persistent receive cannot probe")
	}
	return nil
}

func (f *family) check() error {
	if f.wild() {
		return f.checkWild()
	}
	free := slices.Clone(f.recvs)
	if i := slices.IndexFunc(f.sends, func(l *life) bool { return l.m.From != f.sends[0].m.From }); i >= 0 {
		return fmt.Errorf("message %d may be received in place of message %d, or of others", f.sends[i].m.ID, f.sends[0].m.ID)
	}
	for _, l := range f.sends {
		i := slices.IndexFunc(free, func(r *life) bool { return r.m.pattern().admits(l.m) })
		switch {
		case i < 0 || free[i] != l:
			return fmt.Errorf("message %d will be received by the receive of another message, of those from %d", l.m.ID, l.m.From)
		case l.recvDone < l.sendStart:
			return fmt.Errorf("message %d: its receive is waited for before the send begins", l.m.ID)
		case l.sendDone < l.recvStart && l.m.Mode != Buffered:
			return fmt.Errorf("message %d: its send is waited for before the receive begins", l.m.ID)
		}
		free = slices.Delete(free, i, i+1)
	}
	return nil
}

func (f *family) checkWild() error {
	first, longest := f.sends[0], 0
	for _, l := range f.sends {
		longest = max(longest, l.m.Len)
		switch {
		case l.m.Kind != first.m.Kind:
			return fmt.Errorf("messages %d and %d have different types, but one may be received for the other", first.m.ID, l.m.ID)
		case l.sendDone < f.posted() && l.m.Mode != Buffered:
			return fmt.Errorf("message %d: its send is waited for before all receives that others may take are begun", l.m.ID)
		case l.m.Mode == Ready || l.cancel != never:
			return fmt.Errorf("message %d is received from any source: it can be neither ready nor cancelled", l.m.ID)
		}
	}
	for k, l := range f.recvs {
		started := 0
		for _, s := range f.sends {
			if s.sendStart <= l.recvDone {
				started++
			}
		}
		switch {
		case started <= k:
			return fmt.Errorf("message %d: receive %d of its kind is waited for when %d messages are sent", l.m.ID, k+1, started)
		case l.m.Cap < longest:
			return fmt.Errorf("message %d: its receive may get %d elements and has room for %d", l.m.ID, longest, l.m.Cap)
		}
	}
	return nil
}

func (a *lives) checkCancels() error {
	anyTags := map[where]bool{}
	for _, l := range a.list {
		anyTags[l.where()] = anyTags[l.where()] || l.m.AnyTag
	}
	for _, l := range a.list {
		if l.cancel == never {
			continue
		}
		if err := l.checkCancel(anyTags[l.where()]); err != nil {
			return fmt.Errorf("message %d is cancelled: %w", l.m.ID, err)
		}
	}
	return nil
}

func (l *life) checkCancel(anyTag bool) error {
	switch {
	case len(l.family.sends) > 1:
		return errors.New("there are others of its kind")
	case anyTag:
		return errors.New("its receiver receives any tag at that time")
	case l.m.SendSlot != 0 || l.m.RecvSlot != 0 || l.m.Mode == Ready:
		return errors.New("it is persistent or ready")
	}
	return nil
}

// checkSlots checks that the messages of a persistent request are alike and follow each other.
func (a *lives) checkSlots() error {
	for _, side := range []Side{SendSide, RecvSide} {
		slots := map[int][]*life{}
		for _, l := range a.list {
			if s := l.m.slot(side); s != 0 {
				slots[s] = append(slots[s], l)
			}
		}
		for slot, list := range slots {
			slices.SortFunc(list, func(x, y *life) int { return *x.start(side) - *y.start(side) })
			for i, l := range list {
				switch {
				case *l.start(side) == *l.done(side):
					return fmt.Errorf("message %d: a persistent request does not block", l.m.ID)
				case i > 0 && *list[i-1].done(side) > *l.start(side):
					return fmt.Errorf("message %d: its persistent request is started while message %d is under way", l.m.ID, list[i-1].m.ID)
				case l.m.request(side) != list[0].m.request(side):
					return fmt.Errorf("messages %d and %d are different, slot %d cannot serve both", list[0].m.ID, l.m.ID, slot)
				}
			}
		}
	}
	return nil
}

func (m *Message) slot(s Side) int {
	if s == SendSide {
		return m.SendSlot
	}
	return m.RecvSlot
}

// request returns the parts of the message that a persistent request of one side depends on.
func (m *Message) request(s Side) Message {
	if s == SendSide {
		return Message{From: m.From, To: m.To, Comm: m.Comm, Tag: m.Tag, Kind: m.Kind, Len: m.Len, Mode: m.Mode}
	}
	p := m.pattern()
	return Message{To: m.To, Comm: m.Comm, From: p.source, Tag: p.tag, Kind: m.Kind, Cap: m.Cap}
}

// checkReady checks that the sender of each ready send knows that its receive has begun: it has
// learned of that by messages and barriers since.
func (a *lives) checkReady() error {
	if !slices.ContainsFunc(a.list, func(l *life) bool { return l.m.Mode == Ready }) {
		return nil
	}
	h := newHistory(a)
	for i := range a.p.Steps {
		for _, l := range h.at[i] {
			if l.m.Mode == Ready && l.sendStart == i && (l.recvStart >= i || !h.knows(l.m.From, l.m.To, l.recvStart)) {
				return fmt.Errorf("message %d is ready, but its sender cannot know that the receive has begun", l.m.ID)
			}
		}
		h.step(i)
	}
	return nil
}

// buffered returns how much of the attached memory a buffered send takes at most.
func (m *Message) buffered() int { return 2*m.Len*m.Kind.Size() + mpi.BsendOverhead }

// history records which rank knows of which steps of which other rank, step by step. These are
// vector clocks, carried only by messages without wildcards and by barriers.
type history struct {
	a      *lives
	at     [][]*life       // the messages that begin or end at a step
	comms  *comms          // before the step
	clocks [][]int         // by rank: the last step of each rank that the rank has learned of
	sent   map[*life][]int // the sender's clock at the beginning of a send
}

func newHistory(a *lives) *history {
	h := &history{a: a, comms: a.p.comms(), at: make([][]*life, len(a.p.Steps)), sent: map[*life][]int{}}
	for range a.p.Procs {
		h.clocks = append(h.clocks, slices.Repeat([]int{never}, a.p.Procs))
	}
	for _, l := range a.list {
		steps := []int{l.sendStart, l.recvStart, l.sendDone, l.recvDone}
		slices.Sort(steps)
		for _, i := range slices.Compact(steps) {
			h.at[i] = append(h.at[i], l)
		}
	}
	return h
}

func (h *history) knows(rank, other, step int) bool { return h.clocks[rank][other] >= step }

func (h *history) step(i int) {
	for _, l := range h.at[i] {
		if l.recvStart == i {
			h.clocks[l.m.To][l.m.To] = i
		}
		if l.sendStart == i {
			h.clocks[l.m.From][l.m.From] = i
			h.sent[l] = slices.Clone(h.clocks[l.m.From])
		}
	}
	for _, l := range h.at[i] {
		if l.recvDone == i && l.cancel == never && !l.family.wild() {
			merge(h.clocks[l.m.To], h.sent[l])
		}
	}
	s := h.a.p.Steps[i]
	if c, ok := s.(Collective); ok && c.Call == Barrier {
		h.barrier(h.comms.byName[c.Comm])
	}
	_, _, _ = h.comms.apply(s) // checked already
}

func (h *history) barrier(g *group) {
	before := slices.Clone(h.clocks)
	for _, r := range g.all() {
		h.clocks[r] = slices.Clone(before[r])
		for _, o := range g.partners(r) {
			merge(h.clocks[r], before[o])
		}
	}
}

func merge(clock, other []int) {
	for i, n := range other {
		clock[i] = max(clock[i], n)
	}
}
