package links

import (
	"cmp"
	"slices"
	"time"
)

// HostLinks describes the links of all procs of two hosts, or of one, however many there are.
type HostLinks struct {
	A, B  int // IMPI host ranks, the lower one first
	Links []LinkCount

	// AToB and BToA are the bytes that were sent by direct links and have not been received yet.
	// They are known for Known links, and not for Unknown ones. For links within a host AToB has
	// both directions.
	AToB, BToA     uint64
	Known, Unknown int

	// AWaits and BWaits count links that are being made and for which procs of A and of B have sent
	// messages.
	AWaits, BWaits int
}

// Pairs returns the number of pairs of procs between the hosts that have used a link.
func (h *HostLinks) Pairs() (n int) {
	for _, l := range h.Links {
		n += l.Pairs
	}
	return n
}

// BetweenHosts puts together what the hosts of a job have counted of their links.
func (j *Job) BetweenHosts() (list []HostLinks) {
	all := make(map[[2]int]*HostCounts, len(j.ByHost))
	for i := range j.ByHost {
		all[[2]int{j.ByHost[i].From, j.ByHost[i].To}] = &j.ByHost[i]
	}
	for way, x := range all {
		other := all[[2]int{way[1], way[0]}]
		switch {
		case way[0] == way[1]:
			list = append(list, within(x))
		case way[0] < way[1]:
			list = append(list, between(x, other))
		case other == nil:
			h := between(x, nil)
			h.A, h.B = way[1], way[0]
			h.AWaits, h.BWaits = h.BWaits, h.AWaits
			list = append(list, h)
		}
	}
	slices.SortFunc(list, func(a, b HostLinks) int { return cmp.Or(a.A-b.A, a.B-b.B) })
	return list
}

// HostTraffic counts what all procs of two hosts, or of one, have sent each other.
type HostTraffic struct {
	A, B       int // IMPI host ranks, the lower one first
	AToB, BToA Count
	HalfTrip   time.Duration // the shortest estimate of a link's; 0: there is none
}

// TrafficBetweenHosts returns the traffic between the hosts of a job, whatever way it went, in the
// order of the hosts. Of a host that does not answer it has the bytes that others have received
// from it.
func (j *Job) TrafficBetweenHosts() (list []HostTraffic) {
	all := make(map[[2]int]*HostTraffic)
	of := func(a, b int) *HostTraffic {
		x := [2]int{min(a, b), max(a, b)}
		if all[x] == nil {
			all[x] = &HostTraffic{A: x[0], B: x[1]}
		}
		return all[x]
	}
	for i := range j.ByHost {
		x := &j.ByHost[i]
		h := of(x.From, x.To)
		out, in := &h.AToB, &h.BToA
		if x.From > x.To {
			out, in = in, out
		}
		out.Messages, out.Data, out.Bytes = &x.Messages, &x.Data, &x.Sent
		if x.From != x.To {
			in.Bytes = cmp.Or(in.Bytes, &x.Received)
		}
		if half := x.RTT / 2; half > 0 && (h.HalfTrip == 0 || half < h.HalfTrip) {
			h.HalfTrip = half
		}
	}
	for _, h := range all {
		list = append(list, *h)
	}
	slices.SortFunc(list, func(a, b HostTraffic) int { return cmp.Or(a.A-b.A, a.B-b.B) })
	return list
}

// EstimateRoundTrips estimates the round trips between hosts by those of their channels, where
// packets go through the agents and no link of procs has an estimate.
func EstimateRoundTrips(hosts []HostCounts, channels []Channel) {
	for i := range hosts {
		x := &hosts[i]
		if x.RTT > 0 || !slices.ContainsFunc(x.Links, func(l LinkCount) bool { return l.State == StateAgents && l.Pairs > 0 }) {
			continue
		}
		for _, c := range channels {
			if c.From == x.From && c.To == x.To {
				x.RTT = c.RTT
			}
		}
	}
}

// within is HostLinks of the procs of one host. Both procs of each link count it.
func within(x *HostCounts) HostLinks {
	h := HostLinks{A: x.From, B: x.To}
	var all LinkCount // that are linked, or lost at an end
	for _, l := range x.Links {
		if l.State == StateUnused || l.Pairs <= 0 {
			continue
		}
		if h.AWaits += l.Waits; carries(l.State) {
			all.Pairs, all.Counted, all.Sent, all.Received = all.Pairs+l.Pairs, all.Counted+l.Counted, all.Sent+l.Sent, all.Received+l.Received
		}
		l.Pairs, l.Resumes = (l.Pairs+1)/2, (l.Resumes+1)/2
		h.Links = append(h.Links, l)
	}
	if n := (all.Pairs + 1) / 2; all.Counted == all.Pairs && all.Pairs%2 == 0 {
		h.Known, h.AToB = n, *left(&all.Sent, &all.Received)
	} else {
		h.Unknown = n
	}
	return h
}

// between is HostLinks of two hosts; the other one may have reported nothing.
func between(x, other *HostCounts) HostLinks {
	h := HostLinks{A: x.From, B: x.To}
	here, there := carriers(x), carriers(other)
	lost := func(c *HostCounts) (n int) {
		for _, l := range c.Links {
			if l.State == StateLost {
				n += l.Pairs
			}
		}
		return n
	}
	told := x
	if other != nil && lost(other) > lost(x) {
		told = other
	}
	for _, l := range told.Links {
		if l.State != StateUnused && l.Pairs > 0 {
			h.Links = append(h.Links, l)
		}
	}
	for _, l := range x.Links {
		h.AWaits += l.Waits
	}
	if other != nil {
		for _, l := range other.Links {
			h.BWaits += l.Waits
		}
	}
	for t, a := range here {
		b := there[t]
		if a.Pairs == b.Pairs && a.Counted == a.Pairs && b.Counted == b.Pairs {
			h.Known += a.Pairs
			h.AToB += *left(&a.Sent, &b.Received)
			h.BToA += *left(&b.Sent, &a.Received)
		} else {
			h.Unknown += max(a.Pairs, b.Pairs)
		}
	}
	for t, b := range there {
		if here[t].Pairs == 0 {
			h.Unknown += b.Pairs
		}
	}
	return h
}

// carries reports whether bytes can be under way on links in a state.
func carries(s State) bool { return s == StateLinked || s == StateLost }

// carriers sums what may have bytes under way, by transport. A link that one end has lost may be
// linked at the other one.
func carriers(x *HostCounts) map[string]LinkCount {
	sums := make(map[string]LinkCount)
	if x == nil {
		return sums
	}
	for _, l := range x.Links {
		if carries(l.State) && l.Pairs > 0 {
			s := sums[l.Transport]
			s.Pairs, s.Counted, s.Sent, s.Received = s.Pairs+l.Pairs, s.Counted+l.Counted, s.Sent+l.Sent, s.Received+l.Received
			sums[l.Transport] = s
		}
	}
	return sums
}
