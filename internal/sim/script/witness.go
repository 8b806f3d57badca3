package script

// Witness is what an Env may implement, too, if its ranks share one thread. Run
// then sees that nobody gets past a barrier, or completes a synchronous send,
// before those have come that it has to wait for. Results do not show that.
type Witness interface {
	// Begun tells how many steps a rank has begun, or passed by: its Record's Begun.
	Begun(rank int) int
}

// has tells whether a rank has come to a step. It has where nobody knows.
func (r *runner) has(rank, step int) bool {
	w, ok := r.env.(Witness)
	return !ok || w.Begun(rank) > step
}

// gathered is for a rank that has got past a barrier.
func (r *runner) gathered(g *group) error {
	for _, rank := range g.members {
		if !r.has(rank, r.step) {
			return mismatch("rank %d is past the barrier, and rank %d has not come to it", r.me, rank)
		}
	}
	return nil
}

// matched is for a synchronous send that is complete: a receive that may get the
// message has been started.
func (r *runner) matched(m *Message) error {
	if m.Mode != Synchronous {
		return nil
	}
	l := r.a.byID[m.ID]
	first := l.recvStart
	if l.family.wild() {
		for _, o := range l.family.recvs {
			first = min(first, o.recvStart)
		}
	}
	if !r.has(m.To, first) {
		return mismatch("the synchronous send of message %d is complete, and rank %d has not started a receive for it", m.ID, m.To)
	}
	return nil
}
