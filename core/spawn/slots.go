package spawn

import (
	"fmt"
	"slices"
	"time"
)

// SlotWait is the maximum time that a part waits for the slots of procs that are about to end.
const SlotWait = 10 * time.Second

// SlotGrace is the time that a part waits although no procs are known to end soon: the message that
// some have passed Finalize, or have disconnected from their parents, may be on its way from
// another host while the parents spawn again.
const SlotGrace = 500 * time.Millisecond

// Slots are the places for spawned procs that a site has, shared by all worlds that have procs
// there. P identifies a part of a world; decisions about parts come from [Slots.Next]. The node
// passes the time, and calls [Slots.Tick] when [Slots.Deadline] has come.
type Slots[P comparable] struct {
	Site  string
	Total int
	Procs []int // of the job, by host, as weights for spawned procs; nil: all are alike

	// Leaving reports whether procs of a part that has slots are about to end, so that waiting for
	// their slots for longer than SlotGrace makes sense. nil means that none ever is.
	Leaving func(P) bool

	taken     int
	holders   []holder[P] // in order of arrival, for reproducible results
	waiting   []*slotRequest[P]
	withdrawn []P // withdrawn before their request came, the oldest first
	answers   []SlotAnswer[P]
}

// maxWithdrawn is how many parts are remembered that were withdrawn before they asked.
const maxWithdrawn = 1024

type holder[P comparable] struct {
	part  P
	host  int
	slots int
}

// SlotRequest is the request for a part: as many procs of each command as its soft key allows
// (MPI-4.1, 11.8.4), on some hosts.
type SlotRequest struct {
	Commands []Command
	Soft     []Soft
	Hosts    []int // at least one, in the order in which they get ranks
}

// NewSlotRequest returns the request for the procs of some commands, whose Info needs only the key
// soft.
func NewSlotRequest(commands []Command, hosts []int) (w SlotRequest, r *Refusal) {
	w = SlotRequest{Commands: commands, Hosts: hosts}
	for i := range commands {
		soft, problem := ReadSoft(commands[i].Info["soft"], commands[i].Procs)
		if problem != "" {
			return w, commands[i].Refuse(problem)
		}
		w.Soft = append(w.Soft, soft)
	}
	return w, nil
}

type slotRequest[P comparable] struct {
	SlotRequest
	part    P
	asked   time.Time
	graced  bool     // SlotGrace is over
	refusal *Refusal // answer if it waits in vain
}

// SlotAnswer is the decision about a part: for how many procs of each command it has slots, and on
// which hosts, or why it has none.
type SlotAnswer[P comparable] struct {
	Part      P
	Granted   []int
	HostParts []HostPart
	Refused   *Refusal
}

// Next returns the next answer; ok is false if there is none.
func (s *Slots[P]) Next() (a SlotAnswer[P], ok bool) {
	if len(s.answers) == 0 {
		return a, false
	}
	a, s.answers = s.answers[0], s.answers[1:]
	return a, true
}

// Taken returns the number of slots that parts have; Total less Taken are free.
func (s *Slots[P]) Taken() int { return s.taken }

// Reserve requests slots for a part. The answer may come later, if slots that the site has are not
// free.
func (s *Slots[P]) Reserve(now time.Time, part P, request SlotRequest) {
	w := &slotRequest[P]{SlotRequest: request, part: part, asked: now}
	if i := slices.Index(s.withdrawn, part); i >= 0 {
		s.withdrawn = slices.Delete(s.withdrawn, i, i+1)
		s.answers = append(s.answers, SlotAnswer[P]{Part: part, Refused: Refuse(-1, "the request for slots of site %s was withdrawn", s.Site)})
		return
	}
	if !s.try(w) {
		s.waiting = append(s.waiting, w)
	}
}

// Cancel refuses a part that waits. It has no effect on others.
func (s *Slots[P]) Cancel(part P) {
	s.drop(func(w *slotRequest[P]) bool { return w.part == part })
}

// Withdraw cancels a part's request and releases the slots that it has. If its request has not come
// yet, the part is refused when it comes.
func (s *Slots[P]) Withdraw(part P) {
	known := slices.ContainsFunc(s.waiting, func(w *slotRequest[P]) bool { return w.part == part }) ||
		slices.ContainsFunc(s.holders, func(h holder[P]) bool { return h.part == part })
	if !known {
		s.withdrawn = append(s.withdrawn[max(0, len(s.withdrawn)-maxWithdrawn+1):], part)
		return
	}
	s.Cancel(part)
	s.Release(part)
}

// Release releases the slots of a part, if it has some. Parts that wait get them, the first one
// first.
func (s *Slots[P]) Release(part P) { s.release(func(h *holder[P]) bool { return h.part == part }) }

// ReleaseAt releases the slots that a part has on one host, as when its procs there have ended.
// Parts that wait get them, as with Release.
func (s *Slots[P]) ReleaseAt(part P, host int) {
	s.release(func(h *holder[P]) bool { return h.part == part && h.host == host })
}

func (s *Slots[P]) release(which func(*holder[P]) bool) {
	s.holders = slices.DeleteFunc(s.holders, func(h holder[P]) bool {
		if which(&h) {
			s.taken -= h.slots
			return true
		}
		return false
	})
	s.waiting = slices.DeleteFunc(s.waiting, s.try)
}

// Deadline returns when the wait of the next part is over; ok is false if none waits.
func (s *Slots[P]) Deadline() (at time.Time, ok bool) {
	for _, w := range s.waiting {
		if until := w.until(); !ok || until.Before(at) {
			at, ok = until, true
		}
	}
	return at, ok
}

// until is when something changes for a part that waits, if nobody leaves.
func (w *slotRequest[P]) until() time.Time {
	if w.graced {
		return w.asked.Add(SlotWait)
	}
	return w.asked.Add(SlotGrace)
}

// Tick refuses the parts whose wait is over.
func (s *Slots[P]) Tick(now time.Time) {
	s.drop(func(w *slotRequest[P]) bool {
		w.graced = w.graced || !now.Before(w.until())
		return w.graced && (!s.somebodyLeaves() || !now.Before(w.until()))
	})
}

func (s *Slots[P]) drop(which func(*slotRequest[P]) bool) {
	s.waiting = slices.DeleteFunc(s.waiting, func(w *slotRequest[P]) bool {
		if which(w) {
			s.answers = append(s.answers, SlotAnswer[P]{Part: w.part, Refused: w.refusal})
			return true
		}
		return false
	})
}

func (s *Slots[P]) try(w *slotRequest[P]) (answered bool) {
	room := s.Total - s.taken
	granted := make([]int, len(w.Commands))
	for i := range w.Commands {
		c := &w.Commands[i]
		if granted[i] = w.Soft[i].LargestUpTo(min(c.Procs, room)); granted[i] < 0 {
			w.refusal = c.Refuse(fmt.Sprintf("of the %d slots of site %s for spawned procs %d are taken, and it needs %d more", s.Total, s.Site, s.Total-room, c.Procs))
			if s.mayFit(&w.SlotRequest) && (!w.graced || s.somebodyLeaves()) {
				return false
			}
			s.answers = append(s.answers, SlotAnswer[P]{Part: w.part, Refused: w.refusal})
			return true
		}
		room -= granted[i]
	}
	s.taken = s.Total - room
	hostParts := spread(granted, w.Hosts, s.loads(), s.weight)
	for _, x := range hostParts {
		h := holder[P]{part: w.part, host: x.Host}
		for _, n := range x.Procs {
			h.slots += n
		}
		s.holders = append(s.holders, h)
	}
	s.answers = append(s.answers, SlotAnswer[P]{Part: w.part, Granted: granted, HostParts: hostParts})
	return true
}

// mayFit reports whether a request could be granted if no slots were taken.
func (s *Slots[P]) mayFit(w *SlotRequest) bool {
	room := s.Total
	for i := range w.Commands {
		n := w.Soft[i].LargestUpTo(min(w.Commands[i].Procs, room))
		if n < 0 {
			return false
		}
		room -= n
	}
	return true
}

func (s *Slots[P]) loads() func(host int) int {
	taken := make(map[int]int)
	for _, h := range s.holders {
		taken[h.host] += h.slots
	}
	return func(host int) int { return taken[host] }
}

func (s *Slots[P]) weight(host int) int {
	if host < len(s.Procs) {
		return max(s.Procs[host], 1)
	}
	return 1
}

func (s *Slots[P]) somebodyLeaves() bool {
	return s.Leaving != nil && slices.ContainsFunc(s.holders, func(h holder[P]) bool { return s.Leaving(h.part) })
}
