package agent

import (
	"time"

	"github.com/openimpi/impi/core/dynamic"
)

// Limits of the time for which hosts that listen already may be out of reach. Between sites there
// may be a tunnel that has to come up first, or a network that loses packets.
const (
	ReachLimit = 5 * time.Second  // at the start of a job, hosts of the own site
	FarLimit   = 20 * time.Second // at the start of a job, hosts of other sites

	// reachNotice is the time after which the next dial that fails is a warning. This comes within
	// ReachLimit, as two rounds of dials are at most 2 s apart.
	reachNotice = 3 * time.Second
)

// Reach decides about a host to which a channel is dialled, after each round in which all
// candidates have failed: whether anything of the host answers, and whether to warn the operator
// while there is time. It is used for one dial plan. IMPI ch.2, Host-to-host connections.
type Reach struct {
	Must    bool // only transports of the route are dialled: otherwise plain TCP is the last candidate
	Own     bool // it is a host of the own site
	Listens bool // it runs impi, so that it listens before others learn of it
	Began   time.Time

	end  time.Time // of the round of dials; zero: none has begun
	slow bool      // nothing came in time in the last round, which may be for other reasons
	told bool      // the operator was warned
}

// StartLimit returns the maximum time for a dial at the start of a job. local says for each
// candidate, from the one that is dialled on, whether it stays on a machine. All candidates of a
// round together have DialsLimit if the host listens.
func (r *Reach) StartLimit(now time.Time, local []bool) time.Duration {
	if !r.Listens {
		return dynamic.DialLimit
	}
	return r.roundLimit(now, local)
}

// OnDemandLimit is StartLimit for a channel that is made on demand: all candidates of a round
// together have DialsLimit, so that a host that cannot be reached is given up then.
func (r *Reach) OnDemandLimit(now time.Time, local []bool) time.Duration {
	return r.roundLimit(now, local)
}

func (r *Reach) roundLimit(now time.Time, local []bool) time.Duration {
	if r.end.IsZero() {
		r.end = now.Add(dynamic.DialsLimit)
	}
	return dynamic.FirstLimit(r.end.Sub(now), local)
}

// OnDemandTime returns the maximum time for making a channel on demand. start is the time that is
// left for the start of the job, and resume that of a channel to be resumed: a host that accepts
// connections and does not greet may be busy.
func OnDemandTime(start, resume time.Duration) time.Duration {
	return max(ReachLimit, start, resume)
}

// Reached is what is known of a host after a round of dials.
type Reached struct {
	// Silent is true if nothing answers. A dance is told so by Dance.NoAnswer, otherwise by
	// Dance.DialFailed; a channel on demand is given up.
	Silent bool
	// Warn is true if the operator is to be told that nothing answers. The job ends if that lasts
	// for Left.
	Warn bool
	Left time.Duration
}

// AtStart decides after a round of dials at the start of a job. Who runs impi listens, so silence
// counts against it; so does that of others where plain TCP is allowed.
func (r *Reach) AtStart(now time.Time, missed []dynamic.FailedCandidate) (x Reached) {
	r.end = time.Time{}
	switch what := signOf(missed, r.Must); {
	case what == answers:
		r.slow = false
	case r.firstSlow(what):
		x.Warn = r.Listens
	case !r.Must, r.Listens:
		x.Silent = true
		late := r.Listens && !r.Own && !r.told && now.Sub(r.Began) >= reachNotice
		x.Warn = late
	}
	if x.Warn {
		r.told = true
		if x.Left = FarLimit; r.Own {
			x.Left = dynamic.DialsLimit
		}
	}
	return x
}

// OnDemand decides after a round of dials for a channel that is made on demand. The host is given
// up if nothing of it answers after DialsLimit. If only time ran out, perhaps because a process was
// busy with its handshake, there is one more round, as at the start of the job.
func (r *Reach) OnDemand(now time.Time, missed []dynamic.FailedCandidate) (x Reached) {
	r.end = time.Time{}
	if now.Sub(r.Began) < dynamic.DialsLimit {
		return x
	}
	for _, m := range missed {
		if m.Verdict != dynamic.Accepted || m.Failure&dynamic.Unconnected == 0 {
			r.slow = false
			return x
		}
	}
	if r.firstSlow(signOf(missed, r.Must)) {
		return Reached{Warn: r.Listens, Left: dynamic.DialsLimit}
	}
	return Reached{Silent: true}
}

// firstSlow reports whether nothing came in time in a round, for the first time in a row.
func (r *Reach) firstSlow(what sign) bool {
	if what != mayBeSlow || r.slow {
		return false
	}
	r.slow = true
	return true
}

// sign is what is known of a host all of whose candidates have failed.
type sign int

const (
	answers   sign = iota // something answers, which did not accept the link
	mayBeSlow             // no answer in time, perhaps from a process that shakes hands and is busy
	isSilent              // there is no route to it, or nothing listens
)

// signOf says what is known of a host all of whose candidates have failed. If plain TCP is
// allowed (must is false) it is the last candidate, and its error alone counts, since it is the
// kernel's. Otherwise all candidates count, each of which has a handshake that may be slow.
func signOf(missed []dynamic.FailedCandidate, must bool) sign {
	if !must {
		missed = missed[len(missed)-1:]
	}
	least := isSilent
	for _, m := range missed {
		switch f := m.Failure; {
		case f&dynamic.Unconnected == 0:
			return answers
		case !must || f&dynamic.OutOfReach != 0:
		case f&dynamic.TooSlow != 0:
			least = mayBeSlow
		default:
			return answers
		}
	}
	return least
}
