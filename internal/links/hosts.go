package links

// HostLinks is what links the procs of two hosts, or of one, all of them, however many there are.
type HostLinks struct {
	A, B  int // IMPI host ranks, the lower one first
	Links []LinkCount

	// AToB and BToA are the bytes that were sent by direct links and have not been received there, of Known
	// links; Unknown are the others. Of links within a host both ways are AToB.
	AToB, BToA     uint64
	Known, Unknown int

	// AWaits and BWaits are links that are being made, for which procs of A and of B have sent messages.
	AWaits, BWaits int
}

// Pairs is how many pairs of procs there are between the hosts that have used a link.
func (h *HostLinks) Pairs() (n int) {
	for _, l := range h.Links {
		n += l.Pairs
	}
	return n
}

// BetweenHosts puts together what the hosts of a job have counted, in no particular order.
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
	return list
}

// within is HostLinks of the procs of one host, each of whose links two of them count.
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

// between is HostLinks of two hosts, of which the other one may have told nothing.
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

// carriers sums what may have bytes under way, by transport. A link that one end has lost may be linked at
// the other one.
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
