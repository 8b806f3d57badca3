package comm

import (
	"iter"
	"slices"
	"sort"

	"github.com/openimpi/impi/core/wire"
)

// Clients says which client (site) each proc belongs to. Procs of one client usually have
// consecutive numbers, and the table has one entry for each such range, not one for each
// proc. It is immutable and may be shared.
type Clients struct {
	ranges []procRange
}

// procRange is the procs from the end of the range before it up to, but not including, end.
type procRange struct {
	end    Proc
	client wire.ClientRank
}

// NewClients makes the table in which proc i belongs to clients[i].
func NewClients(clients []wire.ClientRank) *Clients {
	return ClientsByRuns(func(yield func(int, wire.ClientRank) bool) {
		for i := 0; i < len(clients) && yield(1, clients[i]); i++ {
		}
	})
}

// ClientsByRuns makes the table from the numbers of procs in a row, and the client of each.
func ClientsByRuns(runs iter.Seq2[int, wire.ClientRank]) *Clients {
	t, end := &Clients{}, Proc(0)
	for n, c := range runs {
		end += Proc(n)
		if k := len(t.ranges) - 1; k >= 0 && t.ranges[k].client == c {
			t.ranges[k].end = end
			continue
		}
		t.ranges = append(t.ranges, procRange{end, c})
	}
	return t
}

// Of returns the client of a proc of the table.
func (t *Clients) Of(p Proc) wire.ClientRank { return t.ranges[t.find(p)].client }

// find returns the index of the range of p.
func (t *Clients) find(p Proc) int {
	if len(t.ranges) > scan {
		return sort.Search(len(t.ranges), func(i int) bool { return p < t.ranges[i].end })
	}
	for i := range t.ranges {
		if p < t.ranges[i].end {
			return i
		}
	}
	return len(t.ranges)
}

// span returns the client of p, and the range that p is in: from first up to, but not
// including, end.
func (t *Clients) span(p Proc) (client wire.ClientRank, first, end Proc) {
	i := t.find(p)
	if i > 0 {
		first = t.ranges[i-1].end
	}
	return t.ranges[i].client, first, t.ranges[i].end
}

// With returns a table with further procs: counts[i] of clients[i], numbered from first on,
// which is above all procs of t. Numbers in between belong to nobody.
func (t *Clients) With(first Proc, counts []int, clients []wire.ClientRank) *Clients {
	u := &Clients{ranges: slices.Clip(t.ranges)}
	for i, n := range counts {
		first += Proc(n)
		u.ranges = append(u.ranges, procRange{first, clients[i]})
	}
	return u
}

// Without returns a table in which the procs from first up to, but not including, end,
// which one call of With has added, belong to nobody.
func (t *Clients) Without(first, end Proc) *Clients {
	u := &Clients{}
	for _, r := range t.ranges {
		if r.end <= first || r.end > end {
			u.ranges = append(u.ranges, r)
		}
	}
	return u
}
