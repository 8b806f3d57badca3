package script

import "slices"

// Shrink makes a program smaller for which fails is true, as long as that stays
// so: it leaves out steps, messages and ranks, and makes simpler what remains. It
// calls fails with legal programs only, again and again until nothing more can be
// left out; a fails that is not sure to say the same of the same program is good
// enough. The result is p itself if nothing can be left out, and p stays as it is.
func Shrink(p *Program, fails func(*Program) bool) *Program {
	s := &shrinker{best: p, fails: fails}
	for before := -1; before != s.found; {
		before = s.found
		s.leaveOut()
		s.leaveOutRanks()
		s.simplify()
	}
	return s.best
}

type shrinker struct {
	best  *Program
	fails func(*Program) bool
	found int // how often it became smaller
}

// try takes a program if it is legal and still fails.
func (s *shrinker) try(p *Program) bool {
	if p == nil || Check(p) != nil || !s.fails(p) {
		return false
	}
	s.best = p
	s.found++
	return true
}

// unit is what can be left out: a message with all that is done with it, or a
// step that is no message's, and perhaps another that belongs to it.
type unit struct{ message, step, also int }

func units(p *Program) []unit {
	var list []unit
	for _, m := range p.Messages {
		list = append(list, unit{m.ID, never, never})
	}
	for i, s := range p.Steps {
		switch s := s.(type) {
		case Detach:
		case Attach:
			detach := slices.IndexFunc(p.Steps[i:], func(d Step) bool { return d == Step(Detach{s.Rank}) })
			list = append(list, unit{0, i, i + detach})
		default:
			if s.messages() == nil {
				list = append(list, unit{0, i, never})
			}
		}
	}
	return list
}

// leaveOut leaves units out, first many at a time and then one by one.
func (s *shrinker) leaveOut() {
	list := units(s.best)
	for size := max(1, len(list)/2); ; size /= 2 {
		for at := 0; at < len(list); {
			end := min(at+size, len(list))
			if s.try(without(s.best, list[at:end])) {
				list = units(s.best) // what stood behind has come to at
			} else {
				at = end
			}
		}
		if size <= 1 {
			return
		}
	}
}

// without is p without some units, and without what needs the communicators that
// these make.
func without(p *Program, gone []unit) *Program {
	messages, steps := map[int]bool{}, map[int]bool{}
	for _, u := range gone {
		if u.message != 0 {
			messages[u.message] = true
		} else {
			steps[u.step], steps[u.also] = true, true
		}
	}
	q := &Program{Procs: p.Procs}
	there := map[string]bool{World: true}
	for i, s := range p.Steps {
		comm, made := uses(s)
		if steps[i] || comm != "" && !there[comm] {
			continue
		}
		for _, name := range made {
			there[name] = true
		}
		q.Steps = append(q.Steps, s)
	}
	for i := range p.Messages {
		if m := &p.Messages[i]; messages[m.ID] || !there[m.Comm] {
			messages[m.ID] = true
		} else {
			q.Messages = append(q.Messages, *m)
		}
	}
	left := q.Steps[:0]
	for _, s := range q.Steps {
		if s = strip(s, messages); s != nil {
			left = append(left, s)
		}
	}
	q.Steps = left
	return q
}

// uses tells which communicator a step needs, and which it makes.
func uses(s Step) (comm string, made []string) {
	switch s := s.(type) {
	case Lone:
		return s.Comm, nil
	case Null:
		return s.Comm, nil
	case Collective:
		return s.Comm, nil
	case Dup:
		return s.Comm, []string{s.New}
	case Split:
		return s.Comm, s.New
	case Cart:
		return s.Comm, []string{s.New}
	case CartSub:
		return s.Comm, s.New
	case Window:
		return s.Comm, nil
	case Free:
		return s.Comm, nil
	}
	return "", nil
}

// strip takes messages out of a step; nil if nothing is left of it.
func strip(s Step, gone map[int]bool) Step {
	switch s := s.(type) {
	case Start:
		if gone[s.Msg] {
			return nil
		}
	case Cancel:
		if gone[s.Msg] {
			return nil
		}
	case Exchange:
		left := slices.DeleteFunc(slices.Clone(s.Msgs), func(id int) bool { return gone[id] })
		if len(left) == 0 {
			return nil
		}
		return Exchange{left, s.Replace}
	case Wait:
		left := slices.DeleteFunc(slices.Clone(s.Reqs), func(q Req) bool { return gone[q.Msg] })
		if len(left) == 0 {
			return nil
		}
		return Wait{s.Rank, s.How, left}
	}
	return s
}
