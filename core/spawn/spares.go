package spawn

import (
	"fmt"
	"slices"
	"time"

	"github.com/openimpi/impi/core/wire"
)

// MaxSpares is the maximum number of spare sites that a node knows.
const MaxSpares = 32

// SpareOffer is the message with which the node of a spare site offers the site.
type SpareOffer struct {
	Site     string
	Instance uint64        // number of its node: another one after a restart
	To       wire.HostRank // the host of the job that gets the offer: a node may run several
	Hosts    []Host
	Procs    int // procs that were spawned there, or are about to be
}

// SpareState is the state of a spare site, as seen by a node of the job.
type SpareState string

// The states.
const (
	SpareAbsent  SpareState = "absent"  // it is declared and has not come
	SpareWaiting SpareState = "waiting" // it has come, and has no procs
	SpareTaken   SpareState = "taken"   // it has procs that were spawned
	SpareLost    SpareState = "lost"    // it has gone
)

// Spare describes a spare site as seen by a node of the job.
type Spare struct {
	Site
	State SpareState
	Since time.Time // when State began; zero: it was always so
	Procs int       // procs that were spawned there, or are about to be
	Why   string    // reason why it is lost
}

// Spares are the spare sites of a job, as one of its nodes knows them. Each spare site dials every
// host of the job and leaves the link idle, as an offer. A spawn takes an idle link and asks for
// procs over it, and the spare site then makes another one. It also makes another one when its
// offer changes. L names a link, and W a spawn that waits for one.
//
// The caller reports links and spawns, passes the time, calls [Spares.Tick] when [Spares.Deadline]
// has come, and does what [Spares.Next] returns. The zero value is ready.
type Spares[L, W comparable] struct {
	all     []*spareSite[L]
	waiting []spareWait[W]
	steps   []SpareStep[L, W]
}

type spareSite[L comparable] struct {
	Spare
	instance uint64
	idle     []idleLink[L] // at most one to each host of this node
	busy     []L           // links that spawns have taken
}

type idleLink[L comparable] struct {
	link L
	to   wire.HostRank
}

type spareWait[W comparable] struct {
	by    W
	site  string
	until time.Time
	limit time.Duration
}

// SpareStep is an action for the caller: close Drop or, if that is the zero value, report to By
// that it has Link, or that it has none, for Reason.
type SpareStep[L, W comparable] struct {
	Drop   L
	By     W
	Link   L
	Reason string
}

// Next removes and returns the next step; ok is false if there is none.
func (s *Spares[L, W]) Next() (x SpareStep[L, W], ok bool) {
	if len(s.steps) == 0 {
		return x, false
	}
	x, s.steps = s.steps[0], s.steps[1:]
	return x, true
}

// Declare records that the job file has a spare site.
func (s *Spares[L, W]) Declare(site Site) {
	if s.called(site.Name) == nil && len(s.all) < MaxSpares {
		s.all = append(s.all, &spareSite[L]{Spare: Spare{Site: site, State: SpareAbsent}})
	}
}

// List returns the spare sites, those that are declared first.
func (s *Spares[L, W]) List() (list []Spare) {
	for _, x := range s.all {
		list = append(list, x.Spare)
	}
	return list
}

// Refuses returns the reason why an offer would be refused, or "" if it would be accepted.
func (s *Spares[L, W]) Refuses(o SpareOffer) (reason string) {
	switch {
	case o.Site == "":
		return "it has no name"
	case o.Procs < 0:
		return fmt.Sprintf("it has %d procs", o.Procs)
	case s.called(o.Site) == nil && len(s.all) >= MaxSpares:
		return fmt.Sprintf("there are %d spare sites already", MaxSpares)
	}
	return ""
}

// Offer accepts a link over which a spare site offers itself, or returns the reason why it is
// refused. A newer offer of a site replaces the one before it.
func (s *Spares[L, W]) Offer(now time.Time, o SpareOffer, l L) (reason string) {
	if reason := s.Refuses(o); reason != "" {
		return reason
	}
	x := s.called(o.Site)
	if x == nil {
		x = &spareSite[L]{Spare: Spare{Site: Site{Name: o.Site}}}
		s.all = append(s.all, x)
	}
	again := x.instance != o.Instance // its node was restarted: the links of the previous one are of no use
	x.idle = slices.DeleteFunc(x.idle, func(old idleLink[L]) bool {
		if !again && old.to != o.To {
			return false
		}
		s.steps = append(s.steps, SpareStep[L, W]{Drop: old.link})
		return true
	})
	if again {
		x.busy = nil
	}
	x.idle = append(x.idle, idleLink[L]{l, o.To})
	x.instance, x.Procs, x.Why = o.Instance, o.Procs, ""
	if len(o.Hosts) > 0 {
		x.Hosts = o.Hosts
	}
	state := SpareWaiting
	if o.Procs > 0 {
		state = SpareTaken
	}
	x.move(state, now)
	if i := slices.IndexFunc(s.waiting, func(w spareWait[W]) bool { return w.site == o.Site }); i >= 0 {
		w := s.waiting[i]
		s.waiting = slices.Delete(s.waiting, i, i+1)
		s.grant(x, w.by)
	}
	return ""
}

func (x *spareSite[L]) move(to SpareState, now time.Time) {
	if x.State != to {
		x.State, x.Since = to, now
	}
}

func (s *Spares[L, W]) grant(x *spareSite[L], by W) {
	l := x.idle[0].link
	x.idle, x.busy = x.idle[1:], append(x.busy, l)
	s.steps = append(s.steps, SpareStep[L, W]{By: by, Link: l})
}

// Ended records that a link has ended, idle or taken. A site without a link is lost. It has no
// effect for an unknown link, such as one that was dropped.
func (s *Spares[L, W]) Ended(now time.Time, l L, why string) {
	for _, x := range s.all {
		before := len(x.idle) + len(x.busy)
		x.idle = slices.DeleteFunc(x.idle, func(o idleLink[L]) bool { return o.link == l })
		x.busy = slices.DeleteFunc(x.busy, func(o L) bool { return o == l })
		if left := len(x.idle) + len(x.busy); left == 0 && before > 0 {
			x.Procs, x.Why = 0, why
			x.move(SpareLost, now)
		}
	}
}

// Ask requests a link to a spare site. The answer comes at once if the site has come, and after
// limit if it has not come by then.
func (s *Spares[L, W]) Ask(now time.Time, by W, site string, limit time.Duration) {
	if x := s.called(site); x != nil && len(x.idle) > 0 {
		s.grant(x, by)
		return
	}
	s.waiting = append(s.waiting, spareWait[W]{by, site, now.Add(limit), limit})
}

// Cancel ends the wait of a spawn, which gets no answer then.
func (s *Spares[L, W]) Cancel(by W) {
	s.waiting = slices.DeleteFunc(s.waiting, func(w spareWait[W]) bool { return w.by == by })
}

// Deadline returns when the wait of the next spawn is over; ok is false if none waits.
func (s *Spares[L, W]) Deadline() (at time.Time, ok bool) {
	for _, w := range s.waiting {
		if !ok || w.until.Before(at) {
			at, ok = w.until, true
		}
	}
	return at, ok
}

// Tick answers the spawns whose wait is over.
func (s *Spares[L, W]) Tick(now time.Time) {
	s.waiting = slices.DeleteFunc(s.waiting, func(w spareWait[W]) bool {
		if now.Before(w.until) {
			return false
		}
		s.steps = append(s.steps, SpareStep[L, W]{By: w.by, Reason: s.why(w)})
		return true
	})
}

func (s *Spares[L, W]) why(w spareWait[W]) string {
	const remedy = "start impi-node on its machine, or let spawn wait longer by the info key timeout, in seconds"
	x := s.called(w.site)
	switch {
	case x != nil && x.State == SpareLost:
		return fmt.Sprintf("spare site %s is lost (%s) and has not come back within %v: %s", w.site, x.Why, w.limit, remedy)
	case x == nil || x.State == SpareAbsent:
		return fmt.Sprintf("spare site %s has not come within %v: %s", w.site, w.limit, remedy)
	}
	return fmt.Sprintf("spare site %s is there and has answered no further request within %v: see its log", w.site, w.limit)
}

func (s *Spares[L, W]) called(name string) *spareSite[L] {
	i := slices.IndexFunc(s.all, func(x *spareSite[L]) bool { return x.Name == name })
	if i < 0 {
		return nil
	}
	return s.all[i]
}
