package dynamic

// DirectLinks decide which direct links the procs of a node have with other procs of their job, and
// which of these resume. Such links carry the packets that IMPI has between hosts (IMPI ch.3,
// Packet Protocol). K identifies a pair: a proc of the node and another one. The zero value is
// ready.
type DirectLinks[K comparable] struct {
	Pairs     PairLinks[K]
	Resumable ResumableLinks[K]
}

// Arrive returns the verdict about a link that the other end has made. id is the session from its
// greeting, or zero if the link does not resume. prior is true if the other end's link is used when
// both dial at the same time. A link that is accepted is entered here before the verdict is sent,
// since the other end may ask to resume the link from then on.
func (d *DirectLinks[K]) Arrive(x K, id ResumableID, prior bool) Verdict {
	switch v := d.Pairs.Arrive(x, prior); v {
	case Accepted:
		d.enter(x, id, false)
		return v
	case StillLinked: // the prior end, which has made this link, has closed the last one; this node will notice it soon
		return TieLost
	default:
		return v
	}
}

// LostBeforeUse records that an accepted link broke before the proc got it.
func (d *DirectLinks[K]) LostBeforeUse(x K) {
	d.Resumable.Remove(x, d.Resumable.Get(x))
	d.Pairs.Drop(x)
}

// Uncertain records that the greeting of a link that this node is making broke off: the other end
// may have accepted the link, and then asks to resume it.
func (d *DirectLinks[K]) Uncertain(x K, id ResumableID) {
	if s := d.Resumable.Get(x); s == nil || !s.Making {
		d.Resumable.Begin(x, id, &d.Pairs)
	}
}

// Made records that the proc gets a link that this node has made.
func (d *DirectLinks[K]) Made(x K, id ResumableID) { d.enter(x, id, true) }

// Abandon records that this node stops trying to make a link for which Uncertain may have been
// called.
func (d *DirectLinks[K]) Abandon(x K) {
	if s := d.Resumable.Get(x); s != nil && s.Making {
		d.Resumable.Remove(x, s)
	}
}

func (d *DirectLinks[K]) enter(x K, id ResumableID, dialled bool) {
	if id != (ResumableID{}) {
		d.Resumable.Add(x, id, dialled)
	}
}
