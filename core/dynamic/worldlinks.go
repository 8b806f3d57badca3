package dynamic

// ResumeWorldsFeature is the name, on business cards, of links between worlds that resume. Both ends
// need it: nodes that do not have it refuse the greeting of such a link as malformed.
const ResumeWorldsFeature = "resume-worlds"

// WorldPair is a proc of a node and a proc of another world.
type WorldPair struct{ Local, Peer WorldProc }

// Reversed returns the same pair from the point of view of the other proc's node.
func (x WorldPair) Reversed() WorldPair { return WorldPair{x.Peer, x.Local} }

// WorldLinks decide which links the procs of a node have to procs of other worlds (MPI-4.1, 11.9).
// No agents carry packets in their place. Whether they resume, and what is done then, is decided as
// for links inside a job. A is the data of a proc's request for a link, and L the data about a link.
// The zero value is ready.
type WorldLinks[A, L any] struct {
	DirectLinks[WorldPair]
	given map[WorldPair]L // links that procs have
	asked map[WorldPair]A // requests of procs that wait for a link
}

// Ask is called for a proc that asks for a link. It returns true if the node has to dial, and false
// if there is a link, or one is being made.
func (s *WorldLinks[A, L]) Ask(x WorldPair, what A) bool {
	if _, there := s.given[x]; there {
		return false
	}
	if s.asked == nil {
		s.asked = make(map[WorldPair]A)
	}
	s.asked[x] = what
	return s.Pairs.Request(x)
}

// Arrive returns the verdict about a link that the other end has made. If both ends dial at the
// same time, the link of the lower WorldProc is used. id is the session from its greeting, or zero
// if the link does not resume.
func (s *WorldLinks[A, L]) Arrive(x WorldPair, id ResumableID) Verdict {
	v := s.Pairs.Arrive(x, x.Peer.Compare(x.Local) < 0)
	if v == Accepted {
		s.enter(x, id, false)
	}
	return v
}

// SetLink records that the proc gets a link. It has no effect if the link was closed since.
func (s *WorldLinks[A, L]) SetLink(x WorldPair, l L) {
	if s.Pairs.State(x) != Linked {
		return
	}
	if s.given == nil {
		s.given = make(map[WorldPair]L)
	}
	s.given[x] = l
	delete(s.asked, x)
}

// LinkOf returns the data about the link that a proc has, or the zero value if it has none.
func (s *WorldLinks[A, L]) LinkOf(x WorldPair) L { return s.given[x] }

// SetNoLink records that the proc is informed that there is no link. It may ask again.
func (s *WorldLinks[A, L]) SetNoLink(x WorldPair) { delete(s.asked, x) }

// Drop records that a link is closed, as after MPI_Comm_disconnect (MPI-4.1, 11.10.4); another one
// can be made.
func (s *WorldLinks[A, L]) Drop(x WorldPair) {
	if s.Pairs.Drop(x) {
		delete(s.given, x)
		s.Resumable.Remove(x, s.Resumable.Get(x))
	}
}

// LostBeforeUse records that an accepted link broke before the proc got it. again is true if the
// proc has asked for a link in the meantime, with the data what: another one has to be made for it.
func (s *WorldLinks[A, L]) LostBeforeUse(x WorldPair) (what A, again bool) {
	s.Drop(x)
	what, again = s.asked[x]
	return what, again
}

// ForgetProc forgets the links of a proc that has ended, and what it has asked for.
func (s *WorldLinks[A, L]) ForgetProc(local WorldProc) {
	for x := range s.Pairs.All() {
		if x.Local == local {
			s.Pairs.Forget(x)
			delete(s.given, x)
			delete(s.asked, x)
			s.Resumable.Remove(x, s.Resumable.Get(x))
		}
	}
}
