package dynamic

// Repair is what a node has to do for a proc whose resumable link has lost its connection.
type Repair uint8

// What there may be to do.
const (
	Nothing    Repair = iota // nothing: it is being done, or the link was given up
	Redial                   // dial again, and call Answered
	TellPeer                 // ask the other end's node that its proc dials, and call Answered
	NoSuchLink               // the proc has no such link
)

// Sessions are the resumable links of a node's procs: which end dials again, whether that is
// under way, and what to answer the other end's node. K names a proc of the node and another
// one. The zero value is ready.
type Sessions[K comparable] struct{ of map[K]*SessionState }

// SessionState is one resumable link, as the node of its proc knows it.
type SessionState struct {
	ID      Session
	Dialled bool // by this node, which therefore dials again
	Making  bool // its first connection is being made by this node, so that the proc here has none yet
	Busy    bool // a Repair is being done
	Over    bool // the proc has given the link up
	Resumes int  // how many further connections the proc was given
}

// Add enters a new link, which replaces the pair's last one. dialled reports whether this node
// has made it.
func (s *Sessions[K]) Add(x K, id Session, dialled bool) *SessionState {
	if s.of == nil {
		s.of = make(map[K]*SessionState)
	}
	s.of[x] = &SessionState{ID: id, Dialled: dialled}
	return s.of[x]
}

// Begin enters a link that this node is making, since the other end may have accepted it already
// and ask to resume it. Add or Remove follows. It returns nil if the other end's link has come
// first.
func (s *Sessions[K]) Begin(x K, id Session, pairs *PairLinks[K]) *SessionState {
	if pairs.Phase(x) != Dialling {
		return nil
	}
	state := s.Add(x, id, true)
	state.Making = true
	return state
}

// Remove undoes Add or Begin: the proc was not given the link.
func (s *Sessions[K]) Remove(x K, state *SessionState) {
	if s.of[x] == state {
		delete(s.of, x)
	}
}

// Get returns a pair's link, or nil.
func (s *Sessions[K]) Get(x K) *SessionState { return s.of[x] }

// Want returns what to do for a proc whose link has lost its connection, or, if over is set, that
// has given the link up.
func (s *Sessions[K]) Want(x K, id []byte, over bool) Repair {
	state := s.of[x]
	switch {
	case state == nil || string(state.ID[:]) != string(id):
		return NoSuchLink
	case over || state.Over:
		state.Over = true
		return Nothing
	case state.Busy:
		return Nothing
	}
	state.Busy = true
	if state.Dialled {
		return Redial
	}
	return TellPeer
}

// Judge returns the verdict about a further connection that the other end's node has made for a
// link, or about its message that its proc has lost the last one. finished reports whether the proc
// here has left MPI.
func (s *Sessions[K]) Judge(x K, h Hello, finished bool) Verdict {
	state := s.of[x]
	switch {
	case finished:
		return Leaving
	case state == nil || state.ID != h.Session || state.Over || state.Dialled != h.Lost:
		return UnknownLink
	}
	return Accepted
}
