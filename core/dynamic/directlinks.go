package dynamic

// DirectLinks decide which direct links the procs of a node have with other procs of their job, and
// which of these resume. Such links carry the packets that IMPI has between hosts (IMPI ch.3,
// Packet Protocol). K identifies a pair: a proc of the node and another one. The zero value is
// ready.
type DirectLinks[K comparable] struct {
	Pairs     PairLinks[K]
	Resumable ResumableLinks[K]
	Moves     Moves

	// unused are the links that were accepted and that their procs do not have yet, and whether the
	// proc has asked for one since.
	unused map[K]bool
}

// Request is called for a proc that asks for a link. It returns true if the node has to dial: see
// PairLinks.Request.
func (d *DirectLinks[K]) Request(x K) (dials bool) {
	if _, ok := d.unused[x]; ok {
		d.unused[x] = true
	}
	return d.Pairs.Request(x)
}

// arrive returns the verdict about a link for a proc that takes links. id is the session from its
// greeting, or zero if the link does not resume. A link that is accepted is entered here before the
// verdict is sent, since the other end may ask to resume the link from then on.
func (d *DirectLinks[K]) arrive(x K, id ResumableID, prior bool) Verdict {
	state := d.Pairs.State(x)
	switch v := d.Pairs.Arrive(x, prior); v {
	case Accepted:
		d.enter(x, id, false)
		if d.unused == nil {
			d.unused = make(map[K]bool)
		}
		d.unused[x] = state != Unlinked // then the proc here has asked for a link before
		return v
	case StillLinked: // the prior end, which has made this link, has closed the last one; this node will notice it soon
		return TieLost
	default:
		return v
	}
}

// Given records that the proc is given a link that was accepted.
func (d *DirectLinks[K]) Given(x K) { delete(d.unused, x) }

// LostBeforeUse records that an accepted link broke before the proc got it. again is true if the
// proc has asked for a link, so that the node has to dial: the other end may have given up. If this
// node's own plan has not ended yet, that goes on instead.
func (d *DirectLinks[K]) LostBeforeUse(x K) (again bool) {
	asked := d.unused[x]
	delete(d.unused, x)
	d.Resumable.Remove(x, d.Resumable.Get(x))
	d.Pairs.Drop(x)
	return asked && d.Pairs.Request(x)
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
// called, and not one that it makes since.
func (d *DirectLinks[K]) Abandon(x K, id ResumableID) {
	if s := d.Resumable.Get(x); s != nil && s.Making && s.ID == id {
		d.Resumable.Remove(x, s)
	}
}

func (d *DirectLinks[K]) enter(x K, id ResumableID, dialled bool) {
	if id != (ResumableID{}) {
		d.Resumable.Add(x, id, dialled)
	}
}
