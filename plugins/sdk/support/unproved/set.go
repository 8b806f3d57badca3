package unproved

import "slices"

// Limits bound the connections of a Set.
type Limits struct {
	PerSource int // from one source that has an address
	Total     int
}

// Set holds the connections that have not proved themselves. Each call takes time proportional to
// their number.
type Set[ID comparable] struct {
	limits Limits
	list   []waiting[ID] // the oldest first
	count  map[Source]int
}

type waiting[ID comparable] struct {
	id   ID
	from Source
}

// NewSet makes a Set of no connections, which Enter keeps within l.
func NewSet[ID comparable](l Limits) *Set[ID] {
	return &Set[ID]{limits: l, count: make(map[Source]int)}
}

// Len returns the number of connections.
func (r *Set[ID]) Len() int { return len(r.list) }

// All returns the connections, the oldest first.
func (r *Set[ID]) All() []ID {
	all := make([]ID, 0, len(r.list))
	for _, g := range r.list {
		all = append(all, g.id)
	}
	return all
}

// Enter adds a connection. If that exceeds a limit, evicted is true and out is the
// connection that the caller must close, which is no longer in the set: the oldest of the
// same source or, if there are too many in all, the oldest of the source that has most.
func (r *Set[ID]) Enter(id ID, from Source) (out ID, evicted bool) {
	victim := -1
	switch {
	case from != (Source{}) && r.count[from] >= r.limits.PerSource:
		victim = r.oldestOf(from)
	case len(r.list) >= r.limits.Total:
		victim = r.oldestOf(r.biggest())
	}
	if victim >= 0 {
		out, evicted = r.list[victim].id, true
		r.remove(victim)
	}
	r.list = append(r.list, waiting[ID]{id, from})
	r.count[from]++
	return out, evicted
}

// Leave removes a connection that has proved itself or has ended. It ignores one that is
// not there.
func (r *Set[ID]) Leave(id ID) {
	if i := slices.IndexFunc(r.list, func(w waiting[ID]) bool { return w.id == id }); i >= 0 {
		r.remove(i)
	}
}

func (r *Set[ID]) remove(i int) {
	from := r.list[i].from
	if r.count[from]--; r.count[from] == 0 {
		delete(r.count, from)
	}
	r.list = slices.Delete(r.list, i, i+1)
}

func (r *Set[ID]) oldestOf(s Source) int {
	return slices.IndexFunc(r.list, func(w waiting[ID]) bool { return w.from == s })
}

// biggest returns the source with the most connections; of several, the one whose oldest
// connection is the oldest.
func (r *Set[ID]) biggest() Source {
	best := r.list[0].from
	for _, g := range r.list {
		if r.count[g.from] > r.count[best] {
			best = g.from
		}
	}
	return best
}
