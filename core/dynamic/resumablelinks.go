package dynamic

// Repair is a node's action for a proc whose resumable link has lost its connection.
type Repair uint8

// The actions.
const (
	NoRepair   Repair = iota // no action: a repair is in progress, or the link was given up
	Redial                   // dial again, and call Repaired and Next
	TellPeer                 // ask the other end's node to make its proc dial, and call Repaired and Next
	NoSuchLink               // the proc has no such link
)

// ResumableLinks are the resumable links of a node's procs: which end dials again, whether a repair
// is in progress, and the answer to the other end's node. K identifies a pair: a proc of the node
// and another one. The zero value is ready.
type ResumableLinks[K comparable] struct{ of map[K]*ResumableLink }

// ResumableLink is one resumable link, as seen by the node of its proc.
type ResumableLink struct {
	ID      ResumableID
	Dialled bool // this node made the link, and therefore dials again
	Making  bool // this node is making its first connection, so the proc here has none yet
	Busy    bool // a Repair is in progress
	GivenUp bool // the proc has given the link up
	Resumes int  // number of further connections that the proc got

	lost    int    // Resumes when the repair began that is in progress
	repairs uint64 // epoch of the connection whose loss it is for
	again   bool   // the proc has lost a further connection during it
	epoch   uint64 // of that connection, or of the one before if its greeting did not come
}

// Add enters a new link, which replaces the pair's last one. dialled reports whether this node
// has made it.
func (s *ResumableLinks[K]) Add(x K, id ResumableID, dialled bool) *ResumableLink {
	if s.of == nil {
		s.of = make(map[K]*ResumableLink)
	}
	s.of[x] = &ResumableLink{ID: id, Dialled: dialled}
	return s.of[x]
}

// Begin enters a link that this node is making, since the other end may have accepted it already
// and ask to resume it. Add or Remove follows. It returns nil if the other end's link has come
// first.
func (s *ResumableLinks[K]) Begin(x K, id ResumableID, pairs *PairLinks[K]) *ResumableLink {
	if pairs.State(x) != Dialling {
		return nil
	}
	state := s.Add(x, id, true)
	state.Making = true
	return state
}

// Remove undoes Add or Begin: the proc was not given the link.
func (s *ResumableLinks[K]) Remove(x K, state *ResumableLink) {
	if s.of[x] == state {
		delete(s.of, x)
	}
}

// Len returns the number of links.
func (s *ResumableLinks[K]) Len() int { return len(s.of) }

// Get returns a pair's link, or nil.
func (s *ResumableLinks[K]) Get(x K) *ResumableLink { return s.of[x] }

// Repair returns the action for a proc whose link has lost the connection of an epoch, or, if over is
// set, that has given the link up.
func (s *ResumableLinks[K]) Repair(x K, id []byte, epoch uint64, over bool) Repair {
	state := s.of[x]
	switch {
	case state == nil || string(state.ID[:]) != string(id):
		return NoSuchLink
	case over || state.GivenUp:
		state.GivenUp = true
		return NoRepair
	case state.Busy:
		// The other end has dialled, so this is another loss: since the repair began, or before, if
		// the first loss was reported late.
		if state.Resumes != state.lost || epoch > state.repairs {
			state.again, state.epoch = true, epoch
		}
		return NoRepair
	}
	return state.begin(epoch)
}

// begin begins a repair of the loss of the connection of an epoch.
func (s *ResumableLink) begin(epoch uint64) Repair {
	s.Busy, s.again, s.lost, s.repairs = true, false, s.Resumes, epoch
	if s.Dialled {
		return Redial
	}
	return TellPeer
}

// Next returns the action, after Repaired or Moves.Asked, for a loss that Repair was called for
// during the last repair and that this one was not for, and the epoch of the connection.
func (s *ResumableLink) Next() (what Repair, epoch uint64) {
	if !s.again || s.Busy || s.GivenUp {
		return NoRepair, 0
	}
	return s.begin(s.epoch), s.epoch
}

// Repaired records the end of what Repair wanted. made is true if the proc gets a connection, or the
// other end's node has answered that its proc will dial, and otherwise v is the verdict of that
// node, Accepted if it has sent none. tell is true if the proc has to be told that there is no
// connection, and over if the other proc has left MPI. Who has told nobody that the link is lost
// says nothing: its proc waits until the link's limit.
func (s *ResumableLink) Repaired(what Repair, made bool, v Verdict) (tell, over bool) {
	s.Busy = false
	tell = !made && (what == Redial || v != Accepted)
	s.again = s.again && !tell
	return tell, v == Leaving
}

// CheckResume returns the verdict about a further connection that the other end's node has made for
// a link, or about its message that its proc has lost the last connection. finished is true if the
// proc here has left MPI.
func (s *ResumableLinks[K]) CheckResume(x K, h Hello, finished bool) Verdict {
	state := s.of[x]
	switch {
	case finished:
		return Leaving
	case state == nil || state.ID != h.ResumableID || state.GivenUp || state.Dialled != h.Lost:
		return UnknownLink
	}
	return Accepted
}
