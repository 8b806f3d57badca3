package collective

import (
	"slices"
	"unsafe"

	"github.com/openimpi/impi/core/board"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/fastpath"
)

// Nonblocking operations use the board as blocking ones do (MPI-4.1, 6.12). A member posts when it
// starts an operation, also while earlier ones are under way, unless it would overwrite data that
// another member still has to read. It reads in any call of MPI, once all have posted the data it
// needs. The progress that a member publishes is the first operation of which it still has to read
// something.

// startMost is how many bytes less than this a member posts in a nonblocking operation: it copies
// them while it holds the process's lock.
const startMost = bigStep

type boardStart struct {
	proc.Uncancellable
	extra  proc.RequestExtension // of its request
	q      *boardQueue
	a      Call
	temps  []temp // to be unpacked at the end
	t      board.Step
	block  int
	posted bool       // or there is nothing to post
	untold bool       // the others cannot see the post until the start ends
	vacant board.Wait // for memory to post in, while it is the first that is not posted
	needs  board.Wait // for posts of other members
	err    error
	looked bool // polled since it was started
	over   bool
}

// boardQueue has the nonblocking operations of a communicator that are under way on the board. Its
// process is locked when it is used.
type boardQueue struct {
	s     *proc.BoardMember
	open  []*boardStart // operations in their order
	last  board.Step    // first step of the operation that was started last
	news  bool          // an operation may have another wait, or a member may be down
	room  bool          // an operation is over, so there may be room for unposted ones
	found int           // number of waits in a row that were over at once
	spare []*boardStart
}

// startable reports whether a nonblocking operation for which fits has returned a block uses the
// board. All members get the same answer. Functions of the program run in calls by messages alone,
// where the process is not locked.
func startable(s *proc.BoardMember, a *Call, block int) bool {
	posts := block
	if a.What == scatter || a.What == alltoall || a.What == reduceScatterBlock {
		posts *= s.C.Size()
	}
	if a.What == reduce || a.What == allreduce || a.What == reduceScatterBlock {
		if !a.op.Predefined() {
			return false
		}
	}
	return posts < startMost && block <= boardLimits[a.What] && !lent(s, a, block)
}

// emptyStart is an operation in which there is nothing to do.
type emptyStart struct{ proc.Uncancellable }

func (*emptyStart) Done() bool                            { return true }
func (*emptyStart) Status() (proc.Status, error)          { return proc.EmptyStatus, nil }
func (x *emptyStart) Finish() (st proc.Status, err error) { x.Gen++; return proc.EmptyStatus, nil }

// startOnBoard starts an operation on the board; ok is false if it is not done there. All members
// get the same answer: none has one before the communicator's first blocking operation, in which
// the members agree on a place on the board.
func startOnBoard(c *proc.Comm, fn string, a *Call, temps []temp) (r proc.Request, ok bool) {
	if c.Usable() != nil {
		return r, false
	}
	cs := &c.State().Colls
	if !cs.Settled.Load() || cs.OnBoard == nil {
		return r, false
	}
	s := cs.OnBoard
	block, ok := fits(s, a)
	if !ok || !startable(s, a, block) {
		return r, false
	}
	p := c.Process()
	if noBytes(a, block) {
		p.Lock()
		s.Count()
		p.Unlock()
		return p.NewOperationRequest(c, fn, &emptyStart{}), true
	}
	s.Prepare()
	var later board.Step
	p.Lock()
	defer func() {
		p.Unlock()
		if later != 0 { // unlocking waits until all stores are visible
			s.Wake(s.Member.PublishRelaxed(later))
		}
	}()
	s.Count()
	if s.Started == nil {
		s.Started = &boardQueue{s: s}
	}
	q := s.Started.(*boardQueue)
	t := board.FirstStep(cs.Next())
	x := q.add(a, temps, block, t)
	if q.begin(x) {
		if x.untold {
			later = t
		}
	} else {
		q.advance()
	}
	x.extra.Fn = fn
	return x.extra.NewRequest(c), true
}

func (q *boardQueue) add(a *Call, temps []temp, block int, t board.Step) *boardStart {
	var x *boardStart
	if n := len(q.spare); n > 0 {
		x, q.spare = q.spare[n-1], q.spare[:n-1]
	} else {
		x = &boardStart{q: q}
		x.extra.Op = x
	}
	x.a, x.temps, x.block, x.t = *a, temps, block, t
	_, posts := given(q.s, a, block)
	x.posted, x.err, x.vacant = !posts, nil, board.Wait{}
	x.untold, x.looked, x.over = false, false, false
	x.needs = q.s.Member.Posted(needed(q.s, a), t)
	q.last = t
	q.open = append(q.open, x)
	q.news = true
	return x
}

// begin is advance for an operation that was just added and is the only one, which it posts; it
// returns false if advance has to do that. It does not look at what the others have posted, as it
// would have to wait for that memory, which expect has fetched while the program computes.
func (q *boardQueue) begin(x *boardStart) bool {
	s := q.s
	if !q.alone() {
		return false
	}
	if x.post(q.found >= fastpath.BoardFoundStreak && s.Member.Rechecks != 0); !x.posted || x.err != nil {
		return false
	}
	if x.needs.Missing() == 0 {
		q.finish(x)
		return true
	}
	x.expect()
	s.Waits = append(s.Waits[:0], x.needs)
	s.Member.Advance(x.t)
	s.Notify()
	s.Pending(true)
	return true
}

// alone reports whether there is one operation, and nothing that it has to wait for but other
// members.
func (q *boardQueue) alone() bool {
	return len(q.open) == 1 && q.s.Member.Busy == 0 && q.s.C.Process().Failure == nil
}

func (q *boardQueue) finish(x *boardStart) {
	s := q.s
	x.get()
	q.open[0], q.open = nil, q.open[:0]
	s.Waits = s.Waits[:0]
	s.Member.Advance(q.last)
	s.Member.End()
	s.Notify()
	s.Pending(false)
	s.CountEnded(1)
}

// expectMost is how many bytes of each member's post are prefetched. The processor prefetches what
// follows by itself.
const expectMost = 1 << 10

// expect prefetches the memory that the operation will read, though it may not be written yet.
func (x *boardStart) expect() {
	s, n := x.q.s, x.block
	if x.a.What == scatter || x.a.What == alltoall || x.a.What == reduceScatterBlock {
		n *= s.C.Size()
	}
	x.needs.Prefetch(n, expectMost)
}

var opsOfC = [fastpath.Ops]Op{
	fastpath.Sum: datatype.Sum, fastpath.Prod: datatype.Prod, fastpath.Max: datatype.Max, fastpath.Min: datatype.Min,
	fastpath.LAnd: datatype.LAnd, fastpath.LOr: datatype.LOr, fastpath.LXor: datatype.LXor,
	fastpath.BAnd: datatype.BAnd, fastpath.BOr: datatype.BOr, fastpath.BXor: datatype.BXor,
}

// Adopt implements proc.StartedOnBoard. C has posted in the operation, and has counted it and those
// after it.
func (q *boardQueue) Adopt(r *fastpath.Request, read bool) proc.StartedByC {
	s := q.s
	a := &Call{What: operation(r.What), Root: int(r.Rank), Kind: datatype.Kind(r.Kind), op: opsOfC[r.Op]}
	block, all := int(r.Room), int(r.Room)*s.C.Size()
	bytes := func(p unsafe.Pointer, n int) []byte {
		if p == nil {
			return nil
		}
		return unsafe.Slice((*byte)(p), n)
	}
	switch a.What {
	case OpBarrier:
	case OpBcast:
		a.Send = bytes(r.Buf, block)
	case gather, allgather:
		a.Send, a.recv = bytes(r.Send, block), bytes(r.Buf, all)
	case alltoall:
		a.Send, a.recv = bytes(r.Send, all), bytes(r.Buf, all)
	default:
		a.Send, a.recv = bytes(r.Send, block), bytes(r.Buf, block)
	}
	x := q.add(a, nil, block, r.Step)
	x.posted = true
	q.last = board.FirstStep(s.Member.Number.Load() - 1)
	s.Member.Resume(q.open[0].t, read)
	s.Waits = append(s.Waits, x.needs)
	s.Pending(true)
	return x
}

func needed(s *proc.BoardMember, a *Call) uint64 {
	root := s.C.Rank() == a.Root
	switch a.What {
	case OpBcast, scatter:
		if root {
			return 0
		}
		return board.SetOf(a.Root)
	case gather, reduce:
		if !root {
			return 0
		}
	default:
	}
	return s.Member.Others()
}

// CarryOn implements proc.BackgroundOp.
func (q *boardQueue) CarryOn() (over bool) {
	q.news = true // a member may be down
	q.advance()
	return len(q.open) == 0
}

// advance continues all operations as far as possible without waiting. Those that wait for a member
// that is down fail.
func (q *boardQueue) advance() {
	for q.goOn() && q.news {
		again := q.room && len(q.open) > 0
		q.news, q.room = false, false
		for _, x := range q.open {
			if x.err = q.s.Lost(x.unfinished()); x.err != nil {
				again = true
			}
		}
		if !again {
			return
		}
	}
}

// Unfinished implements proc.StartedOnBoard.
func (q *boardQueue) Unfinished() (members uint64) {
	for _, x := range q.open {
		members |= x.unfinished()
	}
	return members
}

func (x *boardStart) unfinished() uint64 {
	if !x.posted {
		return x.vacant.Missing()
	}
	return x.needs.Missing()
}

// goOn continues all operations. It returns false without doing so while a blocking one is under
// way, which was called before them.
func (q *boardQueue) goOn() bool {
	s := q.s
	s.Waits = s.Waits[:0]
	if s.Member.Busy != 0 && s.C.Process().Failure == nil {
		s.Pending(len(q.open) > 0)
		return false
	}
	n, full := 0, false
	for _, x := range q.open {
		if !full && x.keepsOlder(q.open[:n]) {
			x.post(false)
		} else if !x.posted {
			full = true
		}
		if x.get(); x.over {
			continue
		}
		if !full || x.posted {
			w := x.needs
			if !x.posted {
				w, full = x.vacant, true
			}
			s.Waits = append(s.Waits, w)
		}
		q.open[n] = x
		n++
	}
	ended := len(q.open) - n
	clear(q.open[n:])
	q.open = q.open[:n]
	if n > 0 {
		s.Member.Advance(q.open[0].t)
	} else {
		s.Member.Advance(q.last)
		s.Member.End()
	}
	s.Notify()
	s.Pending(n > 0)
	if ended > 0 {
		q.news, q.room = true, true
		s.CountEnded(ended)
	}
	return true
}

// keepsOlder reports whether the operation can be posted without overwriting what this member has
// posted in older ones: the others may have read it already, but this member may still have to read
// it itself.
func (x *boardStart) keepsOlder(older []*boardStart) bool {
	if x.posted || len(older) == 0 {
		return true
	}
	s := x.q.s
	b, _ := given(s, &x.a, x.block)
	return !s.Member.Overwrites(x.t, len(b), older[0].t)
}

// post posts what this member has for the others, if there is room for it. With later, the others
// find it only once the start has released them.
func (x *boardStart) post(later bool) {
	if x.posted || x.err != nil {
		return
	}
	s := x.q.s
	b, _ := given(s, &x.a, x.block)
	if x.vacant = s.Member.Vacant(x.t, len(b)); !x.vacant.Done() {
		return
	}
	if x.err = s.Allocate(len(b)); x.err != nil {
		return
	}
	x.posted, x.q.news = true, true
	x.err = guarded(s, func() error {
		copy(s.Member.Room(x.t, len(b)), b)
		return nil
	})
	if x.err != nil {
		return
	}
	if x.untold = later; later {
		s.Member.Write(x.t, uint8(x.a.What), len(b))
	} else {
		s.Member.Post(x.t, uint8(x.a.What), len(b))
	}
}

// get ends the operation if all have posted what it needs, or if it has failed.
func (x *boardStart) get() {
	s := x.q.s
	if failure := s.C.Process().Failure; x.err == nil && failure != nil {
		x.err = failure
	}
	if x.err == nil {
		if !x.posted || !x.needs.Done() {
			return
		}
		x.err = guarded(s, func() error {
			err := get(s, &x.a, x.t, x.block)
			if err == nil {
				unpackAll(x.temps)
			}
			return err
		})
	}
	if x.err != nil {
		x.err = misread(x.err)
	}
	x.over = true
}

// Done continues the operation as far as possible without waiting, and reports whether it is over.
func (x *boardStart) Done() bool {
	if x.over {
		return true
	}
	if !x.looked {
		if x.looked, x.q.found = true, x.q.found+1; !x.needs.Done() {
			x.q.found = 0
		}
	}
	if q := x.q; q.alone() && x.posted && x.err == nil && x.needs.Done() {
		q.finish(x)
	} else {
		q.advance()
	}
	return x.over
}

// Poll polls the wait of the operation, before its waiter polls the links as well, and reports
// whether the operation can continue.
func (x *boardStart) Poll() bool {
	s := x.q.s
	return x.posted && s.Member.Busy == 0 && s.Poll(&x.needs)
}

// Status returns the result of Finish.
func (x *boardStart) Status() (proc.Status, error) { return proc.EmptyStatus, x.err }

// Finish returns the result of the operation, and keeps its memory for another one.
func (x *boardStart) Finish() (proc.Status, error) {
	err := x.err
	if !x.over { // the job has ended
		err = x.q.s.C.Process().Failure
		if i := slices.Index(x.q.open, x); i >= 0 {
			x.q.open = slices.Delete(x.q.open, i, i+1)
		}
	}
	x.Gen++
	x.a, x.temps, x.over = Call{}, nil, true
	x.q.spare = append(x.q.spare, x)
	return proc.EmptyStatus, err
}
