package worlds

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/openimpi/impi/core/mpi"
)

// message says on which communicator it was sent, at which step, by whom and to whom.
type message [4]int64

// longest is how long messages are at most, in items; those of others are as short.
const longest = 3000

// size is how long the message between two is, in items.
func (r *rank) size(m message) int {
	rng := rand.New(rand.NewPCG(uint64(m[0]*1000+m[1]), uint64(m[2]*1000+m[3])^r.x.seed))
	if rng.IntN(8) == 0 {
		return len(m) + rng.IntN(longest)
	}
	return len(m) + rng.IntN(8)
}

func (r *rank) buffer(m message) []int64 {
	b := make([]int64, r.size(m))
	for i := range b {
		b[i] = m[i%len(m)]
	}
	return b
}

// incoming is a receive under way.
type incoming struct {
	comm int
	from int // the sender; -1: any
	buf  []int64
	want message
}

// talk sends a message to each partner on each of the communicators, and then takes
// those of the others: of the communicators in another order, and of some from
// whoever comes. All have the same tag, so that only contexts keep them apart.
func (r *rank) talk(o Op) error {
	rng := rand.New(rand.NewPCG(r.x.seed, uint64(r.op*100+r.me)))
	mine := slices.DeleteFunc(slices.Clone(o.Comms), func(n int) bool { return r.comms[n] == nil })
	var open []mpi.Request
	for _, n := range mine {
		partners := r.x.groups[n].partners(r.me)
		for dst, to := range partners {
			q, err := mpi.Isend(r.comms[n], r.buffer(message{int64(n), int64(r.op), int64(r.me), int64(to)}), dst, r.op)
			if err != nil {
				return failed(err)
			}
			open = append(open, q)
		}
	}
	rng.Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
	for len(mine) > 0 { // a few communicators at a time
		n := 1 + rng.IntN(len(mine))
		if err := r.listen(mine[:n], rng); err != nil {
			return err
		}
		mine = mine[n:]
	}
	return failed(mpi.Waitall(open, nil))
}

// listen takes the messages of some communicators.
func (r *rank) listen(comms []int, rng *rand.Rand) error {
	var all []incoming
	for _, n := range comms {
		anybody := rng.IntN(2) == 0
		for _, from := range r.x.groups[n].partners(r.me) {
			m := incoming{comm: n, from: from, want: message{int64(n), int64(r.op), int64(from), int64(r.me)}}
			m.buf = make([]int64, r.size(m.want))
			if anybody {
				m.from, m.buf = -1, make([]int64, longest+8)
			}
			all = append(all, m)
		}
	}
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	open := make([]mpi.Request, len(all))
	for i := range all {
		m := &all[i]
		src := mpi.AnySource
		if m.from >= 0 {
			src = slices.Index(r.x.groups[m.comm].partners(r.me), m.from)
		}
		var err error
		if open[i], err = mpi.Irecv(r.comms[m.comm], m.buf, src, r.op); err != nil {
			return failed(err)
		}
	}
	seen := map[[2]int]bool{}
	for i := range all {
		st, err := open[i].Wait()
		if err != nil {
			return failed(err)
		}
		if err := r.heard(&all[i], st, seen); err != nil {
			return err
		}
	}
	return nil
}

// heard looks whether a message is what it must be. Nobody may have sent two.
func (r *rank) heard(m *incoming, st mpi.Status, seen map[[2]int]bool) error {
	partners := r.x.groups[m.comm].partners(r.me)
	if st.Source < 0 || st.Source >= len(partners) {
		return fmt.Errorf("%w: on %d a message from rank %d of %d", ErrResult, m.comm, st.Source, len(partners))
	}
	from := partners[st.Source]
	want := message{int64(m.comm), int64(r.op), int64(from), int64(r.me)}
	for i := range r.size(want) {
		if m.buf[i] != want[i%len(want)] {
			return fmt.Errorf("%w: on %d from %s, item %d is %d, want that of %v; it begins with %v",
				ErrResult, m.comm, r.x.name(from), i, m.buf[i], want, m.buf[:len(want)])
		}
	}
	if m.from >= 0 && m.from != from || seen[[2]int{m.comm, from}] {
		return fmt.Errorf("%w: on %d a message of %s twice, or instead of another's", ErrResult, m.comm, r.x.name(from))
	}
	seen[[2]int{m.comm, from}] = true
	r.x.cover["messages"]++
	if r.x.program.worldOf(from) != r.x.program.worldOf(r.me) {
		r.x.cover["messages between worlds"]++
	}
	return nil
}
