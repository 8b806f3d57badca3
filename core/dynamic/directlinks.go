package dynamic

// DirectLinks decide which direct links the procs of a node have with others of their job, and which
// of them are resumed. K names a proc of the node and another one. The zero value is ready.
type DirectLinks[K comparable] struct {
	Ties     Ties[K]
	Sessions Sessions[K]
}

// Arrive judges a link that the other end has made, with the session from its greeting; zero: it is not
// resumed. prior says that this end's link is not used if both dial at the same time. A link that is
// accepted is entered here, before the other end is told: from then on it may ask for it again.
func (d *DirectLinks[K]) Arrive(x K, id Session, prior bool) Verdict {
	switch v := d.Ties.Arrive(x, prior); v {
	case Accepted:
		d.enter(x, id, false)
		return v
	case StillLinked: // by the link of the prior end, of which this node has heard first
		return TieLost
	default:
		return v
	}
}

// Broke says that a link that was accepted broke before the proc had it.
func (d *DirectLinks[K]) Broke(x K) {
	d.Sessions.Dismiss(x, d.Sessions.Get(x))
	d.Ties.Drop(x)
}

// Uncertain says that the greeting of a link that this node is making broke off: the other end may have
// accepted it, and then asks for it again.
func (d *DirectLinks[K]) Uncertain(x K, id Session) {
	if s := d.Sessions.Get(x); s == nil || !s.Making {
		d.Sessions.Begin(x, id, &d.Ties)
	}
}

// Made says that the proc gets a link that this node has made.
func (d *DirectLinks[K]) Made(x K, id Session) { d.enter(x, id, true) }

// Abandon says that this node does not make a link any more that may be Uncertain.
func (d *DirectLinks[K]) Abandon(x K) {
	if s := d.Sessions.Get(x); s != nil && s.Making {
		d.Sessions.Dismiss(x, s)
	}
}

func (d *DirectLinks[K]) enter(x K, id Session, dialled bool) {
	if id != (Session{}) {
		d.Sessions.Enrol(x, id, dialled)
	}
}
