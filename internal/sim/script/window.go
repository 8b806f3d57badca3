package script

import (
	"errors"
	"math/rand/v2"

	"github.com/openimpi/impi/core/mpi"
)

// Window makes the members of a communicator, all of which run our library, create a window and use
// it in each of its ways, and then a distributed graph. Seed decides who is whose neighbour;
// stretches have Len elements. The results are known in advance.
type Window struct {
	Comm string `line:"@"`
	Seed int
	Len  int
}

const maxStretch = 1 << 16

// The contents of a window's memory: counters, and then two stretches.
const (
	summed  = iota // sum of the contributions of all members
	locked         // counter that all members increment, each with the lock
	fetched        // counter that all members increment, without the lock
	counters
)

type exposed struct {
	c     *mpi.Comm
	w     *mpi.Win
	me, n int
	hop   int // distance of a neighbour
	owner int // the member whose counters are used
	len   int // of a stretch
	base  []int64
	bad   error
}

func (r *runner) window(s Window) error {
	g := r.comms.byName[s.Comm]
	if _, _, err := r.comms.apply(s); err != nil {
		return err // checked already
	}
	if !g.has(r.me) {
		return nil
	}
	r.log(s)
	rng := rand.New(rand.NewPCG(uint64(s.Seed), 0))
	x := &exposed{c: r.open[s.Comm], n: len(g.members), me: g.rank(r.me)}
	x.hop, x.owner, x.len = rng.IntN(x.n), rng.IntN(x.n), s.Len
	x.base = make([]int64, counters+2*x.len)
	var err error
	if x.w, err = mpi.WinCreate(x.c, x.base, nil); err != nil {
		return failed(err)
	}
	for _, phase := range []func() error{x.fences, x.alone, x.locks, x.groups, x.w.Free, x.neighbours, x.star} {
		if err := phase(); err != nil {
			return failed(err)
		}
		if x.bad != nil {
			return x.bad
		}
	}
	return nil
}

func (x *exposed) rank(hops int) int { return ((x.me+hops)%x.n + x.n) % x.n }

func (x *exposed) want(what string, at int, got, want int64) {
	if got != want && x.bad == nil {
		x.bad = mismatch("window of %d members: %s, element %d at rank %d: %d instead of %d", x.n, what, at, x.me, got, want)
	}
}

func element(rank, i int) int64 { return int64(rank)<<32 | int64(i) }

// fences puts a stretch and every other element of another, and sums.
func (x *exposed) fences() error {
	every, err := mpi.TypeVector(int64((x.len+1)/2), 1, 2, mpi.TypeOf[int64]())
	if err != nil {
		return err
	}
	mine := make([]int64, x.len)
	for i := range mine {
		mine[i] = element(x.me, i)
	}
	to, after := x.rank(x.hop), int64(counters+x.len)
	err = errors.Join(every.Commit(), x.w.Fence(0), mpi.Put(x.w, mine, to, counters),
		x.w.Put(mpi.Typed(mine, 1, every), mpi.Target{Rank: to, Disp: after, Count: 1, Type: every}),
		mpi.Accumulate(x.w, []int64{int64(x.me + 1)}, x.owner, summed, mpi.Sum), x.w.Fence(0))
	if err != nil {
		return err
	}
	from := x.rank(-x.hop)
	for i := range x.len {
		x.want("put", i, x.base[counters+i], element(from, i))
		there := int64(0)
		if i%2 == 0 {
			there = element(from, i)
		}
		x.want("put with a vector", i, x.base[counters+x.len+i], there)
	}
	if x.me == x.owner {
		x.want("accumulate", 0, x.base[summed], int64(x.n*(x.n+1)/2))
	}
	got := make([]int64, x.len)
	if err := errors.Join(mpi.Get(x.w, got, to, counters), x.w.Fence(0)); err != nil {
		return err
	}
	for i, v := range got {
		x.want("get", i, v, element(x.me, i))
	}
	return nil
}

func (x *exposed) alone() error {
	mine := make([]int64, x.len)
	for i := range mine {
		mine[i] = element(x.me, -i)
	}
	err := errors.Join(mpi.Put(x.w, mine, x.rank(x.hop), int64(counters)), x.w.Fence(mpi.NoSucceed))
	if err != nil { // links may be lost
		return err
	}
	for i := range x.len {
		x.want("single put", i, x.base[counters+i], element(x.rank(-x.hop), -i))
	}
	return err
}

// locks counts at one member, by reading and writing under an exclusive lock, and by atomic
// operations.
func (x *exposed) locks() error {
	w, count, before := x.w, make([]int64, 1), int64(0)
	err := errors.Join(w.Lock(mpi.LockExclusive, x.owner, 0), mpi.Get(w, count, x.owner, locked), w.Flush(x.owner))
	if err != nil {
		return err
	}
	count[0]++
	err = errors.Join(mpi.Put(w, count, x.owner, locked), w.Unlock(x.owner), w.LockAll(0),
		mpi.FetchAndOp(w, 1, &before, x.owner, fetched, mpi.Sum), w.UnlockAll())
	if err != nil {
		return err // the owner must not believe that all have counted
	}
	if err := mpi.Barrier(x.c); err != nil {
		return err
	}
	if before < 0 || before >= int64(x.n) {
		x.want("fetch", 0, before, int64(x.n-1))
	}
	if x.me == x.owner {
		x.want("counted with a lock", 0, x.base[locked], int64(x.n))
		x.want("fetched", 0, x.base[fetched], int64(x.n))
	}
	return nil
}

func (x *exposed) groups() error {
	all, err := x.c.Group()
	if err != nil {
		return err
	}
	origin, err := all.Incl([]int{x.rank(-x.hop)})
	if err != nil {
		return err
	}
	target, err := all.Incl([]int{x.rank(x.hop)})
	if err != nil {
		return err
	}
	mine := make([]int64, x.len)
	for i := range mine {
		mine[i] = -element(x.me, i)
	}
	err = errors.Join(x.w.Post(origin, 0), x.w.Start(target, 0), mpi.Put(x.w, mine, x.rank(x.hop), counters), x.w.Complete(), x.w.Wait())
	for i := range x.len {
		x.want("put to who has posted", i, x.base[counters+i], -element(x.rank(-x.hop), i))
	}
	return err
}

// neighbours makes a ring in which each member gives the edge from the next member on, and
// exchanges elements along it.
func (x *exposed) neighbours() error {
	ring, err := x.c.DistGraphCreate([]int{x.rank(1)}, []int{1}, []int{x.rank(1 + x.hop)}, mpi.Unweighted, nil, false)
	if err != nil {
		return err
	}
	got := make([]int64, x.len)
	mine := make([]int64, x.len)
	for i := range mine {
		mine[i] = element(x.me, i)
	}
	if err := mpi.NeighborAlltoall(ring, mine, got); err != nil {
		return err
	}
	for i, v := range got {
		x.want("of a neighbour", i, v, element(x.rank(-x.hop), i))
	}
	return ring.Free()
}

// star makes a graph in which each member gives an edge from one member to itself; that member has
// them in the order of the members.
func (x *exposed) star() error {
	star, err := x.c.DistGraphCreate([]int{x.owner}, []int{1}, []int{x.me}, []int{x.me}, nil, false)
	if err != nil {
		return err
	}
	in, _, out, weights, err := star.DistGraphNeighbors()
	if err != nil {
		return err
	}
	most := 0
	if x.me == x.owner {
		most = x.n
	}
	x.want("sources of a star", 0, int64(len(in)), 1)
	x.want("destinations of a star", 0, int64(len(out)), int64(most))
	for i := range out {
		x.want("destinations of a star", i, int64(out[i]), int64(i))
		x.want("weights of a star", i, int64(weights[i]), int64(i))
	}
	return star.Free()
}
