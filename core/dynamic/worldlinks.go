package dynamic

// WorldPair is a proc of a node and one of another world.
type WorldPair struct{ Local, Peer Member }

// Back is the same pair as the other proc's node knows it.
func (x WorldPair) Back() WorldPair { return WorldPair{x.Peer, x.Local} }

// WorldLinks decide which links the procs of a node have to procs of other worlds. Such links
// are not resumed, and agents carry no packets in their place. A is what a proc said when it
// asked for a link, and L what is known of one. The zero value is ready.
type WorldLinks[A, L any] struct {
	Ties  Ties[WorldPair]
	given map[WorldPair]L // the proc has the link
	asked map[WorldPair]A // the proc waits for it
}

// Ask is for a proc that asks for a link. True: dial. False: it is under way, or there.
func (s *WorldLinks[A, L]) Ask(x WorldPair, what A) bool {
	if _, there := s.given[x]; there {
		return false
	}
	if s.asked == nil {
		s.asked = make(map[WorldPair]A)
	}
	s.asked[x] = what
	return s.Ties.Want(x)
}

// Arrive judges a link that the other end has made: of two that dial each other at the same time,
// the lower one's link is used.
func (s *WorldLinks[A, L]) Arrive(x WorldPair) Verdict {
	return s.Ties.Arrive(x, x.Peer.Compare(x.Local) < 0)
}

// Give says that a proc is given a link. It has no effect if the link was closed since.
func (s *WorldLinks[A, L]) Give(x WorldPair, l L) {
	if s.Ties.Phase(x) != Linked {
		return
	}
	if s.given == nil {
		s.given = make(map[WorldPair]L)
	}
	s.given[x] = l
	delete(s.asked, x)
}

// Given is what is known of a link that a proc has; nothing if it has none.
func (s *WorldLinks[A, L]) Given(x WorldPair) L { return s.given[x] }

// Deny says that a proc is told that there is no link. It may ask again.
func (s *WorldLinks[A, L]) Deny(x WorldPair) { delete(s.asked, x) }

// Drop says that a link is closed; another one can be made.
func (s *WorldLinks[A, L]) Drop(x WorldPair) {
	if s.Ties.Drop(x) {
		delete(s.given, x)
	}
}

// Broke is for a link that was accepted and broke before the proc had it. True: the proc has
// meanwhile asked for a link, and would have got this one; it has to get another.
func (s *WorldLinks[A, L]) Broke(x WorldPair) (what A, again bool) {
	s.Drop(x)
	what, again = s.asked[x]
	return what, again
}

// Leave forgets all links of a proc that has ended.
func (s *WorldLinks[A, L]) Leave(local Member) {
	for x := range s.Ties.All() {
		if x.Local == local {
			s.Ties.Forget(x)
			delete(s.given, x)
			delete(s.asked, x)
		}
	}
}
