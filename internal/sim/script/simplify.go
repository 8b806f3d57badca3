package script

import "slices"

// simplify makes what there is simpler: first everywhere, as messages that may be
// received for each other have to stay alike, and then one by one.
func (s *shrinker) simplify() {
	for _, change := range messageChanges {
		s.changeMessages(change, nil)
		for i := range s.best.Messages {
			for s.changeMessages(change, &i) {
			}
		}
	}
	for _, m := range slices.Clone(s.best.Messages) {
		if !s.join(m.ID, 0) {
			s.join(m.ID, 1)
		}
	}
	for _, change := range stepChanges {
		s.changeSteps(change, nil)
		for i := range s.best.Steps {
			for s.changeSteps(change, &i) {
			}
		}
	}
}

// changeMessages tries a change with one message, or with all.
func (s *shrinker) changeMessages(change func(*Message) bool, only *int) bool {
	q := &Program{Procs: s.best.Procs, Messages: slices.Clone(s.best.Messages), Steps: s.best.Steps}
	changed := false
	for i := range q.Messages {
		if only == nil || *only == i {
			changed = change(&q.Messages[i]) || changed
		}
	}
	return changed && s.try(q)
}

func (s *shrinker) changeSteps(change func(Step) Step, only *int) bool {
	q := &Program{Procs: s.best.Procs, Messages: s.best.Messages, Steps: slices.Clone(s.best.Steps)}
	changed := false
	for i, step := range q.Steps {
		if only != nil && *only != i {
			continue
		}
		if next := change(step); next != nil {
			q.Steps[i], changed = next, true
		}
	}
	return changed && s.try(q)
}

// join makes one step of all that is done with a message, before the last of it
// or after.
func (s *shrinker) join(id, after int) bool {
	var steps []int
	for i, step := range s.best.Steps {
		if slices.Contains(step.messages(), id) {
			steps = append(steps, i)
		}
	}
	if len(steps) < 2 {
		return false
	}
	q := &Program{Procs: s.best.Procs, Messages: s.best.Messages}
	for i, step := range s.best.Steps {
		if i == steps[len(steps)-1] {
			at := len(q.Steps)
			if step = strip(step, map[int]bool{id: true}); step != nil {
				q.Steps = append(q.Steps, step)
				at += after
			}
			q.Steps = slices.Insert(q.Steps, at, Step(Exchange{Msgs: []int{id}}))
			continue
		}
		if step = strip(step, map[int]bool{id: true}); step != nil {
			q.Steps = append(q.Steps, step)
		}
	}
	return s.try(q)
}

// set gives a value that is simpler, and tells whether it is another.
func set[T comparable](v *T, simple T) bool {
	changed := *v != simple
	*v = simple
	return changed
}

// messageChanges make a message simpler and tell whether they have changed it.
var messageChanges = []func(*Message) bool{
	func(m *Message) bool { return set(&m.SendSlot, 0) },
	func(m *Message) bool { return set(&m.RecvSlot, 0) },
	func(m *Message) bool { return set(&m.Mode, Standard) },
	func(m *Message) bool { return set(&m.By, ByRecv) },
	func(m *Message) bool { return set(&m.AnySource, false) },
	func(m *Message) bool { return set(&m.AnyTag, false) },
	func(m *Message) bool { return set(&m.Cap, m.Len) },
	func(m *Message) bool { return m.bytes() },
	func(m *Message) bool { return set(&m.Kind, Uint8) },
	func(m *Message) bool { return m.resize(0) },
	func(m *Message) bool { return m.Len > 1 && m.resize(1) },
	func(m *Message) bool { return m.Len > 3 && m.resize(m.Len/2) },
	func(m *Message) bool { return m.Len > 1 && m.resize(m.Len-1) },
	func(m *Message) bool { return set(&m.Comm, World) },
}

// resize keeps the room of the receive as far from the length as it is.
func (m *Message) resize(n int) bool {
	m.Cap = max(0, m.Cap+n-m.Len)
	return set(&m.Len, n)
}

// bytes keeps the size.
func (m *Message) bytes() bool {
	m.Len, m.Cap = m.Len*m.Kind.Size(), m.Cap*m.Kind.Size()
	return set(&m.Kind, Uint8)
}

// stepChanges give a simpler step, or nil.
var stepChanges = []func(Step) Step{
	func(s Step) Step {
		if w, ok := s.(Wait); ok && w.How != HowWait {
			return Wait{w.Rank, HowWait, w.Reqs}
		}
		return nil
	},
	func(s Step) Step {
		if x, ok := s.(Exchange); ok && x.Replace {
			return Exchange{Msgs: x.Msgs}
		}
		return nil
	},
	func(s Step) Step {
		if p, ok := s.(Split); ok && slices.ContainsFunc(p.Keys, func(k int) bool { return k != 0 }) {
			p.Keys = make([]int, len(p.Keys))
			return p
		}
		return nil
	},
	ofWorld,
	shorter,
	collectiveChange(func(c *Collective) bool { return set(&c.InPlace, false) }),
	collectiveChange(func(c *Collective) bool { return set(&c.Gap, 0) }),
	collectiveChange(func(c *Collective) bool { return set(&c.Op, OpSum) }),
	collectiveChange(func(c *Collective) bool {
		size := c.Kind.Size()
		c.resize(func(n int) int { return n * size })
		return c.plain()
	}),
	collectiveChange((*Collective).plain),
	collectiveChange(func(c *Collective) bool { return c.resize(func(int) int { return 0 }) }),
	collectiveChange(func(c *Collective) bool { return c.resize(func(n int) int { return min(n, 1) }) }),
	collectiveChange(func(c *Collective) bool { return c.resize(func(n int) int { return (n + 1) / 2 }) }),
	collectiveChange(func(c *Collective) bool { return c.resize(func(n int) int { return max(n-1, min(n, 1)) }) }),
	collectiveChange(func(c *Collective) bool { return set(&c.Comm, World) }),
}

// shorter makes a window's stretches shorter.
func shorter(s Step) Step {
	if w, ok := s.(Window); ok && w.Len > 1 {
		w.Len /= 2
		return w
	}
	return nil
}

// ofWorld makes a communicator of World.
func ofWorld(s Step) Step {
	switch s := s.(type) {
	case Dup:
		if set(&s.Comm, World) {
			return s
		}
	case Split:
		if set(&s.Comm, World) {
			return s
		}
	case Cart:
		if set(&s.Comm, World) {
			return s
		}
	}
	return nil
}

func collectiveChange(change func(*Collective) bool) func(Step) Step {
	return func(s Step) Step {
		if c, ok := s.(Collective); ok && c.Call != Barrier && change(&c) {
			return c
		}
		return nil
	}
}

// plain makes the elements bytes, with an operation that they have.
func (s *Collective) plain() bool {
	if !Uint8.takes(s.Op) {
		s.Op = OpSum
	}
	return set(&s.Kind, Uint8)
}

func (s *Collective) resize(count func(int) int) bool {
	counts := make([]int, len(s.Counts))
	for i, n := range s.Counts {
		counts[i] = count(n)
	}
	changed := !slices.Equal(counts, s.Counts)
	s.Counts = counts
	return changed
}
