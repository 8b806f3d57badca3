package script

import (
	"errors"
	"fmt"
	"slices"
)

type checker struct {
	a        *lives
	comms    *comms
	attached []int       // by rank: free memory for buffered sends, or never if there is none
	buffered [][]*life   // messages in that memory
	ports    map[int]int // the procs that have opened them; -1: closed
}

func (a *lives) checkSteps() error {
	c := &checker{ports: map[int]int{}, a: a, comms: a.p.comms(), attached: make([]int, a.p.Procs), buffered: make([][]*life, a.p.Procs)}
	for r := range c.attached {
		c.attached[r] = never
	}
	for i, s := range a.p.Steps {
		err := c.step(i, s)
		if err == nil {
			_, _, err = c.comms.apply(s)
		}
		if err != nil {
			return a.fault(i, err)
		}
	}
	for r, size := range c.attached {
		if size != never {
			return fmt.Errorf("rank %d leaves memory attached", r)
		}
	}
	return c.left()
}

func (c *checker) left() error {
	for _, g := range c.comms.all {
		if g.of != nil || c.comms.several() && g.live && !g.fixed {
			return fmt.Errorf("communicator %s is left, or an Idup of it", g.name)
		}
	}
	for port, rank := range c.ports {
		if rank != never {
			return fmt.Errorf("rank %d leaves port %d open", rank, port)
		}
	}
	return nil
}

func (c *checker) port(s Step) error {
	switch s := s.(type) {
	case OpenPort:
		if _, known := c.ports[s.Port]; known || !c.comms.several() {
			return errors.New("the port is there already, or there is one world")
		}
		c.ports[s.Port] = s.Rank
		return c.rank(s.Rank)
	case ClosePort:
		if owner, open := c.ports[s.Port]; !open || owner != s.Rank || owner == never {
			return fmt.Errorf("rank %d has not opened port %d", s.Rank, s.Port)
		}
		c.ports[s.Port] = never
	case Meet:
		if owner, open := c.ports[s.Port]; !open || owner != s.Root || owner == never {
			return fmt.Errorf("proc %d has not opened port %d", s.Root, s.Port)
		}
	}
	return nil
}

// quiet checks that nothing is under way on a communicator, which is required when it ends and when
// leaders exchange messages on it.
func (c *checker) quiet(i int, comm string) error {
	for _, l := range c.a.list {
		if l.m.Comm == comm && min(l.sendStart, l.recvStart) < i && max(l.sendDone, l.recvDone) > i {
			return fmt.Errorf("message %d is under way", l.m.ID)
		}
	}
	return nil
}

func (c *checker) step(i int, s Step) error {
	switch s := s.(type) {
	case Start:
		return c.start(s)
	case Exchange:
		return c.exchange(s)
	case Wait:
		if s.How > HowGetStatus || len(s.Reqs) == 0 {
			return errors.New("no such way of waiting, or nothing to wait for")
		}
		return c.rank(s.Rank)
	case Unmatched:
		return c.unmatched(s)
	case Null:
		return c.member(s.Comm, s.Rank)
	case Pause:
		if s.For < 0 {
			return errors.New("it is over before it begins")
		}
		return c.rank(s.Rank)
	case Attach, Detach:
		return c.memory(i, s)
	case Collective:
		return c.collective(s)
	case Window:
		if s.Seed < 0 || s.Len < 0 || s.Len > maxStretch {
			return errors.New("a window with stretches of no such length")
		}
		return nil
	case Free:
		return c.quiet(i, s.Comm)
	case Disconnect:
		return c.quiet(i, s.Comm)
	case Intercomm:
		return c.quiet(i, s.Peer)
	case OpenPort, ClosePort, Meet:
		return c.port(s)
	case Publish, Unpublish, Lookup, Sever, Rejoin:
		return c.service(s)
	case Spawn:
		return s.check(c.comms)
	case Death:
		return s.check(c.a.p)
	case Recover:
		return s.check(c.a.p)
	case Fail:
		return s.check(c.a.p, c.comms)
	}
	return nil
}

func (c *checker) rank(r int) error {
	if r < 0 || r >= c.a.p.Procs {
		return fmt.Errorf("rank %d, the ranks are 0 to %d", r, c.a.p.Procs-1)
	}
	if !c.comms.there(r) {
		return fmt.Errorf("rank %d has not been spawned yet", r)
	}
	return nil
}

func (c *checker) member(comm string, rank int) error {
	g, err := c.comms.get(comm)
	if err == nil && !g.has(rank) {
		err = fmt.Errorf("rank %d is not in communicator %s", rank, comm)
	}
	return err
}

func (c *checker) start(s Start) error {
	l := c.a.byID[s.Msg]
	if err := c.member(l.m.Comm, l.m.rank(s.Side)); err != nil {
		return err
	}
	if g := c.comms.byName[l.m.Comm]; !slices.Contains(g.partners(l.m.From), l.m.To) {
		return fmt.Errorf("message %d: proc %d cannot send to proc %d on %s", l.m.ID, l.m.From, l.m.To, g.name)
	}
	switch {
	case s.Side == SendSide && l.m.Mode == Buffered:
		return c.buffer(l)
	case s.Side == RecvSide && l.m.By != ByRecv && !s.Blocking:
		return fmt.Errorf("message %d: only a blocking receive can probe", l.m.ID)
	}
	return nil
}

func (c *checker) buffer(l *life) error {
	r := l.m.From
	if c.attached[r] < l.m.buffered() {
		return fmt.Errorf("rank %d may lack the memory for message %d, which takes %d bytes", r, l.m.ID, l.m.buffered())
	}
	c.attached[r] -= l.m.buffered()
	c.buffered[r] = append(c.buffered[r], l)
	return nil
}

func (c *checker) exchange(s Exchange) error {
	sends := map[int]*Message{}
	for _, id := range s.Msgs {
		m := c.a.byID[id].m
		sends[m.From] = m
		for _, side := range []Side{SendSide, RecvSide} {
			if err := c.start(Start{Req{id, side}, true}); err != nil {
				return err
			}
		}
	}
	for _, id := range s.Msgs {
		in := c.a.byID[id].m
		out := sends[in.To]
		if out == nil {
			continue
		}
		switch {
		case out.Kind != in.Kind || out.Comm != in.Comm:
			return fmt.Errorf("messages %d and %d differ in type or communicator", out.ID, in.ID)
		case out.Mode != Standard || in.By != ByRecv:
			return fmt.Errorf("messages %d and %d are exchanged: the mode is standard and there is no probe", out.ID, in.ID)
		case s.Replace && in.Cap != out.Len:
			return fmt.Errorf("message %d has %d elements, but message %d replaces it in a buffer of %d", out.ID, out.Len, in.ID, in.Cap)
		}
	}
	return nil
}

func (c *checker) unmatched(s Unmatched) error {
	if err := c.member(s.Comm, s.Rank); err != nil {
		return err
	}
	if s.Source != anySource {
		if g := c.comms.byName[s.Comm]; !slices.Contains(g.partners(s.Rank), s.Source) {
			return fmt.Errorf("rank %d cannot receive from %d on %s", s.Rank, s.Source, g.name)
		}
	}
	for _, l := range c.a.list {
		if l.m.To == s.Rank && l.m.Comm == s.Comm && l.m.Tag == s.Tag {
			return fmt.Errorf("message %d has that tag", l.m.ID)
		}
	}
	if s.Tag < 0 || s.Tag >= TagLimit {
		return fmt.Errorf("tag %d, they are 0 to %d", s.Tag, TagLimit-1)
	}
	return nil
}

// memory checks Attach and Detach. Detach waits until the buffered messages have left, so their
// receives must have begun.
func (c *checker) memory(i int, s Step) error {
	if s, ok := s.(Attach); ok {
		if err := c.rank(s.Rank); err != nil {
			return err
		}
		if c.attached[s.Rank] != never || s.Size < 0 {
			return fmt.Errorf("rank %d has memory attached", s.Rank)
		}
		c.attached[s.Rank] = s.Size
		return nil
	}
	rank := s.(Detach).Rank
	if err := c.rank(rank); err != nil {
		return err
	}
	if c.attached[rank] == never {
		return fmt.Errorf("rank %d has no memory attached", rank)
	}
	for _, l := range c.buffered[rank] {
		posted := l.recvStart
		if l.family.wild() {
			posted = l.family.posted()
		}
		if posted > i || l.sendDone > i {
			return fmt.Errorf("message %d may not have left its buffer", l.m.ID)
		}
	}
	c.attached[rank], c.buffered[rank] = never, nil
	return nil
}

func (c *checker) collective(s Collective) error {
	g, err := c.comms.get(s.Comm)
	if err != nil || s.Call == Barrier {
		return err
	}
	n := len(g.members)
	switch {
	case g.inter() && (s.Call != Allreduce || s.InPlace):
		return errors.New("on intercommunicators there are Barrier, and Allreduce not in place")
	case int(s.Call) >= len(callNames) || int(s.Kind) >= len(kinds):
		return errors.New("no such operation or type")
	case len(s.Counts) != s.Call.counts(n):
		return fmt.Errorf("%d counts, %d are needed for %d ranks", len(s.Counts), s.Call.counts(n), n)
	case s.Call.rooted() && !g.has(s.Root):
		return fmt.Errorf("root %d is not in communicator %s", s.Root, s.Comm)
	case s.Call.reduces() && !s.Kind.takes(s.Op):
		return fmt.Errorf("there is no %s of %s", s.Op, s.Kind)
	case s.InPlace && !s.Call.placed() || s.Gap != 0 && !s.Call.displaced() || s.Gap < 0:
		return errors.New("that cannot be in place, or has no displacements")
	}
	total := 0
	for i, k := range s.Counts {
		if k < 0 || k > maxCount || total > maxCount {
			return fmt.Errorf("%d elements", k)
		}
		total += k + s.Gap
		if s.InPlace && s.Call == Alltoallv && k != s.Counts[i%n*n+i/n] {
			return errors.New("in place both directions have the same counts")
		}
	}
	return nil
}
