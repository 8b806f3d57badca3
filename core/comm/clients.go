package comm

import (
	"iter"
	"math"
	"slices"
	"sort"

	"github.com/openimpi/impi/core/wire"
)

// Clients maps each proc to its client (site). Procs of one client usually have consecutive
// numbers, and often consecutive clients have equally many procs each, as the hosts of a site do:
// then the table has one entry for this whole series, not one for each client or each proc. It is
// immutable and may be shared.
type Clients struct {
	ranges []procRange
}

// procRange is the procs from the end of the range before it up to, but not including, end: width
// of them belong to client, as many that follow to client+1, and so on.
type procRange struct {
	end    Proc
	client wire.ClientRank
	width  Proc
}

// single is a width that no range has: all of it belongs to one client.
const single = math.MaxInt32

// NewClients makes the table in which proc i belongs to clients[i].
func NewClients(clients []wire.ClientRank) *Clients {
	return ClientsByRuns(func(yield func(int, wire.ClientRank) bool) {
		for i := 0; i < len(clients) && yield(1, clients[i]); i++ {
		}
	})
}

// ClientsByRuns returns the table for runs of consecutive procs: the number of procs in each run,
// and their client.
func ClientsByRuns(runs iter.Seq2[int, wire.ClientRank]) *Clients {
	t, end, open := &Clients{}, Proc(0), Proc(0) // open procs before end are of client, and not added yet
	var client wire.ClientRank
	for n, c := range runs {
		if c != client {
			t.add(end, client, open)
			client, open = c, 0
		}
		end, open = end+Proc(n), open+Proc(n)
	}
	t.add(end, client, open)
	return t
}

// add appends the last n procs before end, which belong to a client.
func (t *Clients) add(end Proc, client wire.ClientRank, n Proc) {
	if n == 0 {
		return
	}
	if k := len(t.ranges) - 1; k >= 0 && t.ranges[k].width == n {
		if r := &t.ranges[k]; r.client+wire.ClientRank((r.end-t.begin(k))/n) == client {
			r.end = end
			return
		}
	}
	t.ranges = append(t.ranges, procRange{end, client, n})
}

func (t *Clients) begin(k int) Proc {
	if k == 0 {
		return 0
	}
	return t.ranges[k-1].end
}

// Of returns the client of p, which must be in the table.
func (t *Clients) Of(p Proc) wire.ClientRank {
	client, _, _ := t.span(p)
	return client
}

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

// span returns the client of p, and the procs of that client that p is among: from first up to, but
// not including, end.
func (t *Clients) span(p Proc) (client wire.ClientRank, first, end Proc) {
	k := t.find(p)
	r, first := t.ranges[k], t.begin(k)
	if r.width == single {
		return r.client, first, r.end
	}
	i := (p - first) / r.width
	return r.client + wire.ClientRank(i), first + i*r.width, first + (i+1)*r.width
}

// With returns a table with further procs: counts[i] of clients[i], numbered from first on, which
// is above all procs of t. Numbers in between belong to no client.
func (t *Clients) With(first Proc, counts []int, clients []wire.ClientRank) *Clients {
	u := &Clients{ranges: slices.Clip(t.ranges)}
	for i, n := range counts {
		first += Proc(n)
		u.ranges = append(u.ranges, procRange{first, clients[i], single})
	}
	return u
}

// Without returns a table in which the procs from first up to, but not including, end, which one
// call of With has added, belong to no client.
func (t *Clients) Without(first, end Proc) *Clients {
	u := &Clients{}
	for _, r := range t.ranges {
		if r.end <= first || r.end > end {
			u.ranges = append(u.ranges, r)
		}
	}
	return u
}
