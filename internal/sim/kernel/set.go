package kernel

import (
	"fmt"
	"slices"
	"time"

	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/poll"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// Set is a task's set of links to wait for. It implements machine.Set.
type Set struct {
	t       *Task
	members []member
	events  []poll.Event
	wake    bool
	closed  bool
}

type member struct {
	h    waitable
	id   int // its handle
	key  uint32
	want link.Interest
}

// spurious is the probability that a sleep ends for no reason.
const spurious = 0.02

// NewSet makes a set in which only this task may wait.
func (t *Task) NewSet() *Set { return &Set{t: t} }

func (s *Set) find(handle int) int {
	return slices.IndexFunc(s.members, func(m member) bool { return m.id == handle })
}

// Add implements machine.Set. It fails for handles that the kernel does not know, or the set has.
func (s *Set) Add(handle int, key uint32, want link.Interest) error {
	if handle < 0 || handle >= len(s.t.k.handles) || s.find(handle) >= 0 {
		return fmt.Errorf("kernel: set of %s: cannot add handle %d", s.t.Name, handle)
	}
	h := s.t.k.handles[handle]
	s.members = append(s.members, member{h, handle, key, want})
	h.OnReady(s.t.Wake)
	return nil
}

// Modify changes the events that the set waits for at an end.
func (s *Set) Modify(handle int, key uint32, want link.Interest) error {
	i := s.find(handle)
	if i < 0 {
		return fmt.Errorf("kernel: set of %s: handle %d is not in it", s.t.Name, handle)
	}
	s.members[i].key, s.members[i].want = key, want
	return nil
}

// Remove implements machine.Set.
func (s *Set) Remove(handle int) error {
	i := s.find(handle)
	if i < 0 {
		return fmt.Errorf("kernel: set of %s: handle %d is not in it", s.t.Name, handle)
	}
	s.members[i].h.OnReady(nil)
	s.members = slices.Delete(s.members, i, i+1)
	return nil
}

// Wait sleeps until something is ready.
func (s *Set) Wait(timeout time.Duration) ([]poll.Event, error) {
	if s.look() || timeout == 0 {
		return s.events, nil
	}
	late := false
	if timeout > 0 {
		t := s.t.k.After(timeout, func() { late = true; s.t.Wake() })
		defer t.Stop()
	}
	for !s.look() && !late {
		s.t.Park("a link")
		if s.t.k.Chance(spurious) {
			break
		}
	}
	return s.events, nil
}

// look records what is ready, in random order.
func (s *Set) look() bool {
	s.events = s.events[:0]
	if s.wake {
		s.events = append(s.events, poll.Event{Key: machine.WakeKey})
	}
	s.members = slices.DeleteFunc(s.members, func(m member) bool { return m.h.gone() }) // as the Linux kernel does
	for _, m := range s.members {
		r := m.want&link.Readable != 0 && m.h.readable()
		w := m.want&link.Writable != 0 && m.h.writable()
		if r || w {
			s.events = append(s.events, poll.Event{Key: m.key, Readable: r, Writable: w})
		}
	}
	s.t.k.rng.Shuffle(len(s.events), func(i, j int) { s.events[i], s.events[j] = s.events[j], s.events[i] })
	return len(s.events) > 0
}

// Wake makes the present or next Wait return.
func (s *Set) Wake() {
	if !s.closed {
		s.wake = true
		s.t.Wake()
	}
}

// Clear undoes Wake.
func (s *Set) Clear() { s.wake = false }

// Close implements machine.Set: the task is no longer woken by the ends in the set.
func (s *Set) Close() error {
	s.closed = true
	for _, m := range s.members {
		if !m.h.gone() {
			m.h.OnReady(nil)
		}
	}
	s.members = nil
	return nil
}
