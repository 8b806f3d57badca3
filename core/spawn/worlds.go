package spawn

import (
	"cmp"
	"slices"
	"time"

	"github.com/openimpi/impi/core/dynamic"
)

// State is the state of the connection between a spawned world and the world of its parents. While
// they are connected they end together (MPI-4.1, 11.10.4).
type State uint8

// The states, in the order in which a world passes them.
const (
	Starting     State = iota // not all of its procs are in Init
	Connecting                // its procs are in Init and connect to the parents' port
	Connected                 // the proc that spawned it has a communicator with it
	Disconnected              // the proc has none any more: their ends are independent
	Orphaned                  // the worlds could not connect
)

// Leaving reports whether procs of a part of a world in that state may be about to end, since they
// have disconnected from their parents, or some have finished. A node that has not spawned the
// world knows only whether some have.
func (s State) Leaving(someFinished bool) bool { return s == Disconnected || someFinished }

// PassesOn reports whether a world in that state passes a failure of procs that it has spawned
// itself on to its parents, if the failure comes after its own end.
func (s State) PassesOn() bool { return s == Connected }

// SpawnedWorld is a spawned world, as known to the node of the proc that spawned it.
type SpawnedWorld[P comparable] struct {
	Spawner P // the proc that spawned it
	Request uint64
	Port    dynamic.WorldID // port of the parents, to which its procs connect

	state   State
	awaited bool      // the port is not closed yet; closing it means that they have connected
	until   time.Time // while they connect: end of the time limit
}

// State returns how far the world is, which the calls of Worlds change.
func (w *SpawnedWorld[P]) State() State { return w.state }

// Worlds are the worlds that procs of a node have spawned. P identifies a proc. The caller passes
// the time, and calls [Worlds.Tick] when [Worlds.Deadline] has come. The zero value is ready.
type Worlds[P comparable] struct {
	living []*SpawnedWorld[P] // worlds in the order in which they were started
}

// Started records that all procs of a world are in Init. They and their parents have limit to
// connect; listens is true if the parents' port is still open.
func (s *Worlds[P]) Started(now time.Time, w *SpawnedWorld[P], limit time.Duration, listens bool) {
	w.state, w.until, w.awaited = Connecting, now.Add(limit), listens
	s.living = append(s.living, w)
}

// NotStarted records that a world could not be started.
func (s *Worlds[P]) NotStarted(w *SpawnedWorld[P]) { w.state = Orphaned }

// PortClosed records that parents have closed a port: the procs that had to connect to it have been
// accepted.
func (s *Worlds[P]) PortClosed(port dynamic.WorldID) {
	for _, w := range s.living {
		if w.awaited && w.Port == port {
			w.awaited = false
			w.move(Connected, Connecting)
		}
	}
}

// Disconnect records that the proc has no communicator any more with a world that it has spawned:
// the two are independent from then on (MPI-4.1, 11.10.4).
func (s *Worlds[P]) Disconnect(by P, request uint64) {
	if w := s.of(by, request); w != nil {
		w.move(Disconnected, Connecting, Connected)
	}
}

// Cancel records that the proc could not connect with a world that it has spawned. It returns the
// world, which has to end, or nil if they have connected, or the world ends already.
func (s *Worlds[P]) Cancel(by P, request uint64) *SpawnedWorld[P] {
	if w := s.of(by, request); w != nil && w.move(Orphaned, Connecting) {
		return w
	}
	return nil
}

// ProcEnded records that a proc has ended. Its ports are closed, which does not mean that it has
// accepted connections at them.
func (s *Worlds[P]) ProcEnded(by P) {
	for _, w := range s.living {
		if w.Spawner == by {
			w.awaited = false
		}
	}
}

// ParentsFailed records that the job of the parents has failed, and returns the worlds that have to
// end with it.
func (s *Worlds[P]) ParentsFailed() (end []*SpawnedWorld[P]) {
	for _, w := range s.living {
		if w.state != Disconnected {
			end = append(end, w)
		}
	}
	return end
}

// Deadline returns when the time limit of the next world that has not connected with its parents is
// over; ok is false if there is none.
func (s *Worlds[P]) Deadline() (at time.Time, ok bool) {
	for _, w := range s.living {
		if w.state == Connecting && !w.until.IsZero() && (!ok || w.until.Before(at)) {
			at, ok = w.until, true
		}
	}
	return at, ok
}

// Tick returns the worlds that have to end because they have not connected in time, each once.
func (s *Worlds[P]) Tick(now time.Time) (end []*SpawnedWorld[P]) {
	for _, w := range s.living {
		if w.state == Connecting && !w.until.IsZero() && !now.Before(w.until) {
			w.until = time.Time{}
			end = append(end, w)
		}
	}
	return end
}

// End is the effect of the end of a world on others. Reason is for the procs that wait at the
// parents' port.
type End struct {
	Reason     string
	TooEarly   bool // its parents had not connected with it
	Fails      bool // it failed, so its parents' job fails too
	ReportOnly bool // it failed, which does not affect its parents: report it to the operator only
}

// Ended records that a world that was started has ended, with the text of its failure, or empty.
// stopped is true if the node is ending everything that was spawned at the site; this is a failure
// of the site's own job, whatever the state of the world is.
func (s *Worlds[P]) Ended(w *SpawnedWorld[P], failure string, stopped bool) End {
	w.move(Orphaned, Connecting)
	s.living = slices.DeleteFunc(s.living, func(x *SpawnedWorld[P]) bool { return x == w })
	e := End{Reason: cmp.Or(failure, "it ended before it had connected with its parents"), TooEarly: w.state == Orphaned}
	if failed := failure != "" && !e.TooEarly; failed {
		e.Fails = stopped || w.state == Connected
		e.ReportOnly = !e.Fails
	}
	return e
}

func (s *Worlds[P]) of(by P, request uint64) *SpawnedWorld[P] {
	for _, w := range s.living {
		if w.Spawner == by && w.Request == request {
			return w
		}
	}
	return nil
}

// move changes the state from one of those in from. It returns false if it was another.
func (w *SpawnedWorld[P]) move(to State, from ...State) bool {
	if !slices.Contains(from, w.state) {
		return false
	}
	w.state = to
	return true
}
