package dynamic

import "time"

// Receiver is what a node knows of the proc that a link or a connection is for, when it arrives.
type Receiver struct {
	Known    bool // the greeting names one of the node's procs, and another proc of the job
	InMPI    bool // the proc is between Init and Finalize
	Finished bool // the proc has left MPI
	Ended    bool // its process has ended
	Allowed  bool // the routes allow a link to the other proc by this transport, and that it resumes if it does
	Leaves   bool // the plugin of the transport is drained, and there is another candidate
}

// Arrive returns the verdict about a link for the packets of two procs (IMPI ch.3, Packet Protocol)
// that the other end has made. prior is true if the other
// end's link is used when both dial at the same time. If it is accepted, Given or LostBeforeUse
// follows.
func (d *DirectLinks[K]) Arrive(x K, h Hello, to Receiver, prior bool) Verdict {
	switch {
	case !to.Known:
		return UnknownRank
	case !to.InMPI:
		return Leaving
	case !to.Allowed:
		return NotAllowed
	}
	return d.arrive(x, h.ResumableID, prior)
}

// ArriveAgain returns the verdict about a further connection that the other end's node has made for
// a link, or about its message that its proc has lost the last one: see LostAtPeer. s is the link,
// nil if there is none. limit is the longest time that the link may be without a connection. Of a
// transport that the link has to leave it is refused, so that the other end's node dials by another
// one.
func (d *DirectLinks[K]) ArriveAgain(now time.Time, x K, h Hello, to Receiver, limit time.Duration) (s *ResumableLink, v Verdict) {
	s = d.Resumable.Get(x)
	switch {
	case !to.Known:
		return nil, UnknownRank
	case !to.Finished && !to.Allowed:
		return nil, NotAllowed
	case to.Leaves && s != nil && !h.Lost && d.Moves.Refuses(now, s, limit):
		return nil, NotAllowed
	}
	if v = d.Resumable.CheckResume(x, h, to.Finished); v == Accepted && to.Ended {
		v = UnknownLink
	}
	return s, v
}

// LostAtPeer records the message of the other end's node that its proc has lost its connection,
// which ArriveAgain has accepted. It returns true if the proc here has to be told, so that it asks
// for another one: the other end's node sends the message only once.
func (d *DirectLinks[K]) LostAtPeer(now time.Time, s *ResumableLink, h Hello) (tell bool) {
	if s.Making {
		return false
	}
	if h.Epoch == OrderedEpoch {
		d.Moves.Ordered(now, s)
	}
	return true
}
