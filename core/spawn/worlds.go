package spawn

import (
	"cmp"
	"slices"
	"time"

	"github.com/openimpi/impi/core/dynamic"
)

// State is how a spawned world is connected with the world of its parents, which end together
// while they are (MPI-4.1, 11.10.4).
type State uint8

// The states, in the order in which a world passes them.
const (
	Starting     State = iota // not all of its procs are in Init
	Connecting                // its procs are in Init and connect to the parents' port
	Connected                 // the proc that spawned it has a communicator with it
	Disconnected              // that has none any more: neither's end concerns the other
	Orphaned                  // they could not connect
)

// World is a spawned world, as known to the node of the proc that spawned it.
type World[P comparable] struct {
	By      P // the proc that spawned it
	Request uint64
	Port    dynamic.World // of the parents, which its procs connect to

	state   State
	awaited bool      // until the port is closed, which says that they have connected
	until   time.Time // while they connect: for how long they may
}

// State is the world's state.
func (w *World[P]) State() State { return w.state }

// Worlds are those that procs of a node have spawned. P names a proc. The caller passes the time,
// and calls [Worlds.Tick] when [Worlds.Deadline] has come. The zero value is ready.
type Worlds[P comparable] struct {
	living []*World[P] // that were started, in that order
}

// Started says that all procs of a world are in Init. They and their parents have limit to connect;
// listens reports whether the parents' port is still open.
func (s *Worlds[P]) Started(now time.Time, w *World[P], limit time.Duration, listens bool) {
	w.state, w.until, w.awaited = Connecting, now.Add(limit), listens
	s.living = append(s.living, w)
}

// NotStarted says that a world could not be started.
func (s *Worlds[P]) NotStarted(w *World[P]) { w.state = Orphaned }

// PortClosed says that parents have closed a port: they have let the procs in that were to connect
// to it.
func (s *Worlds[P]) PortClosed(port dynamic.World) {
	for _, w := range s.living {
		if w.awaited && w.Port == port {
			w.awaited = false
			w.move(Connected, Connecting)
		}
	}
}

// Disconnect says that the proc has no communicator any more with a world that it has spawned.
func (s *Worlds[P]) Disconnect(by P, request uint64) {
	if w := s.of(by, request); w != nil {
		w.move(Disconnected, Connecting, Connected)
	}
}

// Cancel says that the proc could not connect with a world that it has spawned. The world is to
// end; nil if they have connected, or it ends already.
func (s *Worlds[P]) Cancel(by P, request uint64) *World[P] {
	if w := s.of(by, request); w != nil && w.move(Orphaned, Connecting) {
		return w
	}
	return nil
}

// Gone says that a proc has ended. Its ports are closed, but it has not accepted anybody at
// them.
func (s *Worlds[P]) Gone(by P) {
	for _, w := range s.living {
		if w.By == by {
			w.awaited = false
		}
	}
}

// ParentsFailed says that the job of the parents has failed, and gives the worlds that are to end
// with it.
func (s *Worlds[P]) ParentsFailed() (end []*World[P]) {
	for _, w := range s.living {
		if w.state != Disconnected {
			end = append(end, w)
		}
	}
	return end
}

// Deadline is when the next of the worlds that have not connected with their parents runs out
// of time; ok is false if there is none.
func (s *Worlds[P]) Deadline() (at time.Time, ok bool) {
	for _, w := range s.living {
		if w.state == Connecting && !w.until.IsZero() && (!ok || w.until.Before(at)) {
			at, ok = w.until, true
		}
	}
	return at, ok
}

// Tick returns the worlds that are to end because they have not connected in time, each once.
func (s *Worlds[P]) Tick(now time.Time) (end []*World[P]) {
	for _, w := range s.living {
		if w.state == Connecting && !w.until.IsZero() && !now.Before(w.until) {
			w.until = time.Time{}
			end = append(end, w)
		}
	}
	return end
}

// End is what the end of a world means to others. Reason is for those who wait at the parents'
// port.
type End struct {
	Reason   string
	TooEarly bool // its parents had not connected with it
	Fails    bool // it failed, and so the job of its parents does
	Apart    bool // it failed, which is no matter of its parents: only the operator is told
}

// Ended says that a world that was started has ended, with the text of its failure, or empty.
// stopped reports whether the node is ending all that was spawned at the site; that is a failure
// of the site's own job, however the world is connected with it.
func (s *Worlds[P]) Ended(w *World[P], failure string, stopped bool) End {
	w.move(Orphaned, Connecting)
	s.living = slices.DeleteFunc(s.living, func(x *World[P]) bool { return x == w })
	e := End{Reason: cmp.Or(failure, "it ended before it had connected with its parents"), TooEarly: w.state == Orphaned}
	if failed := failure != "" && !e.TooEarly; failed {
		e.Fails = stopped || w.state == Connected
		e.Apart = !e.Fails
	}
	return e
}

func (s *Worlds[P]) of(by P, request uint64) *World[P] {
	for _, w := range s.living {
		if w.By == by && w.Request == request {
			return w
		}
	}
	return nil
}

// move changes the state from one of those in from. It returns false if it was another.
func (w *World[P]) move(to State, from ...State) bool {
	if !slices.Contains(from, w.state) {
		return false
	}
	w.state = to
	return true
}
