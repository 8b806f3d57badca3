package comm

import "slices"

// meeting finds which members of a group are in another one, run by run: by arithmetic
// where that is faster, or with a bit set of the other group if either is irregular. Either
// way the cost is linear in the number of runs, or in the sizes of the groups.
type meeting struct {
	other *Group
	bits  []uint64 // bit set of other's members, from low on; nil: by arithmetic
	low   Proc
	found []hits
}

func newMeeting(g, h *Group) *meeting {
	m := &meeting{other: h}
	if len(g.runs)*len(h.runs) > scan*scan+(g.size+h.size)/scan {
		m.mark()
	}
	return m
}

func (m *meeting) mark() {
	low, high := m.other.ends()
	m.low = low
	m.bits = make([]uint64, (int(high)-int(low))/64+1)
	for p := range m.other.All() {
		i := int(p - low)
		m.bits[i/64] |= 1 << (i % 64)
	}
}

func (m *meeting) has(p Proc) bool {
	i := int(p) - int(m.low)
	return i >= 0 && i/64 < len(m.bits) && m.bits[i/64]>>(i%64)&1 != 0
}

// of returns the members of r that the other group has, in ascending order. The result is
// valid until the next call.
func (m *meeting) of(r *run) []hits {
	m.found = m.found[:0]
	if m.bits != nil {
		for i := range int(r.n) {
			if m.has(r.at(i)) {
				m.hit(i)
			}
		}
		return m.found
	}
	for k := range m.other.runs {
		if h := r.common(&m.other.runs[k]); h.n > 0 {
			m.found = append(m.found, h)
		}
	}
	slices.SortFunc(m.found, func(a, b hits) int { return a.from - b.from })
	if alternate(m.found) {
		m.mark()
		return m.of(r)
	}
	return m.found
}

func (m *meeting) hit(i int) {
	if k := len(m.found); k > 0 && m.found[k-1].from+m.found[k-1].n == i {
		m.found[k-1].n++
		return
	}
	m.found = append(m.found, hits{i, 1, 1})
}

// ends returns the smallest and the largest member of a group that is not empty.
func (g *Group) ends() (low, high Proc) {
	low, high = g.runs[0].ends()
	for k := range g.runs[1:] {
		l, h := g.runs[k+1].ends()
		low, high = min(low, l), max(high, h)
	}
	return low, high
}

func alternate(found []hits) bool {
	for k := 1; k < len(found); k++ {
		if found[k-1].last() >= found[k].from {
			return true
		}
	}
	return false
}
