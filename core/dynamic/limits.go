package dynamic

import "time"

// Limits of the time of one dial, and of the greeting after it.
const (
	DialLimit  = 10 * time.Second // one dial of a host that has answered before, or need not listen yet
	GreetLimit = 10 * time.Second

	// DialsLimit is the maximum time for one dial of each candidate of a host of which nothing has
	// come: an unreachable host is named within 5 s (IMPI ch.2, Host-to-host connections).
	DialsLimit = 4500 * time.Millisecond

	// leastShare is the minimum time for one of these dials.
	leastShare = 200 * time.Millisecond

	// lateDial is the maximum time for a dial of a listener that has not answered at the start of the
	// job: the operator was warned then, and a network may have come up since.
	lateDial = 2 * time.Second
)

// FirstLimit returns the maximum time for the dial of the first of some candidates of a host, of
// the time that is left for all of them. local says for each whether it stays on a machine: that one
// gets DialLimit, since no firewall delays an answer.
func FirstLimit(left time.Duration, local []bool) time.Duration {
	if local[0] {
		return DialLimit
	}
	away := 0
	for _, l := range local {
		if !l {
			away++
		}
	}
	return max(left/time.Duration(away), leastShare)
}

// ListenerState is what is known of a listener at which links between procs arrive, from a dial at
// the start of the job.
type ListenerState uint8

// The states.
const (
	Untried  ListenerState = iota // not tried, or not yet
	Answered                      // something answered there
	Unheard                       // nothing answered
)

// DialLimit returns the maximum time for a dial of the listener. local is as in FirstLimit.
func (s ListenerState) DialLimit(local bool) time.Duration {
	switch {
	case local || s == Answered:
		return DialLimit
	case s == Unheard:
		return lateDial
	}
	return DialsLimit
}
