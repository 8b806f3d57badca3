package collective

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/openimpi/impi/core/board"
	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/fastpath"
	"github.com/openimpi/impi/plugins/sdk/support/ntcopy"
)

func bcastBytes(b []byte) func(*coll.Planner, *coll.Schedule) error {
	return func(p *coll.Planner, s *coll.Schedule) error { return p.Bcast(s, b, datatype.Byte, 0) }
}

// boardLimits are the longest blocks, in bytes, for which the board is used: up to them it is
// faster than messages (docs/decisions/0039-experiments-on-speed.md).
var boardLimits = [...]int{
	OpBarrier: 0, OpBcast: board.MaxPost, gather: blockLimit, scatter: blockLimit, allgather: blockLimit,
	alltoall: blockLimit, reduce: blockLimit, allreduce: allreduceLimit, reduceScatterBlock: blockLimit,
}

const blockLimit = 64 << 10

// pairLimit is the limit for two members, for which the board saves no copy.
const pairLimit = 8 << 10

// allreduceLimit is the limit of Allreduce, which is done in pieces beyond.
const allreduceLimit = 4 << 10

// C code does some of these operations by itself (cmd/libmpi/fastboard.c, faststart.c), for blocks
// that are no longer than these limits. Its numbers must be the same, or this does not compile.
const (
	_ = uint(pairLimit - fastpath.MaxBoardPair)
	_ = uint(allreduceLimit - fastpath.MaxBoardAllreduce)
	_ = uint(blockLimit - fastpath.MaxBoardPost)
	_ = uint(startMost - fastpath.BoardStartLimit)

	_ = -(OpBarrier ^ fastpath.BoardBarrier)
	_ = -(OpBcast ^ fastpath.BoardBcast)
	_ = -(gather ^ fastpath.BoardGather)
	_ = -(scatter ^ fastpath.BoardScatter)
	_ = -(allgather ^ fastpath.BoardAllgather)
	_ = -(alltoall ^ fastpath.BoardAlltoall)
	_ = -(reduce ^ fastpath.BoardReduce)
	_ = -(allreduce ^ fastpath.BoardAllreduce)
	_ = -(reduceScatterBlock ^ fastpath.BoardReduceScatterBlock)
)

// boardPieces is the size in bytes up to which vectors of reductions use the board, in pieces.
const boardPieces = 16 << 20

// fits reports whether the operation uses the board, and the size in bytes of each member's block,
// which is the same for all: 0 if it is a barrier, or there is nothing to do. It returns false for
// wrong arguments too, so that the planner reports them.
func fits(s *proc.BoardMember, a *Call) (block int, ok bool) {
	if a.What == OpBarrier {
		return 0, true
	}
	n, me := s.C.Size(), s.C.Rank()
	if int(a.What) >= len(boardLimits) || boardLimits[a.What] == 0 || a.Root < 0 || a.Root >= n {
		return 0, false
	}
	all := 1 // number of blocks of this member's length in a message
	switch a.What {
	case OpBcast:
		block, ok = len(a.Send), true
	case gather:
		block, ok = share(a.Send, a.recv, n, me == a.Root)
	case scatter:
		block, ok = share(a.recv, a.Send, n, me == a.Root)
		all = n
	case allgather:
		block, ok = share(a.Send, a.recv, n, true)
	case alltoall:
		block, ok = len(a.recv)/n, len(a.recv)%n == 0 && (a.Send == nil || len(a.Send) == len(a.recv))
		all = n
	case reduceScatterBlock:
		block, ok = operandPart(a, n)
		all = n
	default:
		block, ok = operands(a, me == a.Root || a.What == allreduce)
	}
	if ok && block == 0 { // whatever the kind is: a member may have items of no bytes
		return 0, true
	}
	if !ok || !a.Kind.Valid() || block%a.Kind.Size() != 0 || overlapping(a, me) {
		return 0, false
	}
	if lent(s, a, block) {
		return block, true
	}
	if n == 2 && a.What != OpBcast && block > pairLimit {
		return 0, false
	}
	return block, block <= boardLimits[a.What] && all*block <= board.MaxPost || piecemeal(s, a, block)
}

func piecemeal(s *proc.BoardMember, a *Call, block int) bool {
	return (a.What == reduce || a.What == allreduce) && block > boardLimits[a.What] && block <= boardPieces && a.op.Commutative() && a.op.Predefined()
}

// share returns the length of a block, which is that of part, this member's own block. has says
// that the member has all n blocks, in whole: then part may be nil.
func share(part, whole []byte, n int, has bool) (block int, ok bool) {
	if !has {
		return len(part), true
	}
	if block = len(part); part == nil {
		block = len(whole) / n
	}
	return block, block*n == len(whole)
}

// operandPart returns the length of what a member of n gets by ReduceScatterBlock; ok is false if
// the buffers do not fit each other.
func operandPart(a *Call, n int) (block int, ok bool) {
	if a.op.Check(a.Kind) != nil {
		return 0, false
	}
	if a.Send == nil {
		return len(a.recv) / n, len(a.recv)%n == 0
	}
	return len(a.recv), len(a.recv)*n == len(a.Send)
}

// operands returns the length of a reduction's vectors; ok is false if the buffers do not fit each
// other.
func operands(a *Call, result bool) (int, bool) {
	if a.op.Check(a.Kind) != nil {
		return 0, false
	}
	if !result {
		return len(a.Send), true
	}
	return len(a.recv), a.Send == nil || len(a.Send) == len(a.recv)
}

func overlapping(a *Call, me int) bool {
	switch a.What {
	case OpBcast:
		return false
	case gather, scatter, reduce:
		if me != a.Root {
			return false
		}
	default:
	}
	return coll.Overlap(a.Send, a.recv)
}

func run(s *proc.BoardMember, a *Call, block int) error {
	p := s.C.Process()
	s.Prepare()
	p.Lock()
	defer p.Unlock()
	if err := s.Ended; err != nil { // C has done the operation
		s.Ended = nil
		return err
	}
	if noBytes(a, block) {
		s.Count()
		return p.Failure
	}
	t, err := s.Enter()
	if err != nil {
		return err
	}
	err = guarded(s, func() error { return do(s, a, t, block) })
	runtime.KeepAlive(a) // others may have read the lent memory
	if err != nil {
		s.Member.Done() // others may wait for this member to read their loans
	}
	s.Leave()
	if err != nil {
		return misread(err)
	}
	return nil
}

// noBytes reports whether no member has anything to send, so that none waits for another: only a
// barrier has to (MPI-4.1, 6.1).
func noBytes(a *Call, block int) bool { return block == 0 && a.What != OpBarrier }

// guarded calls f. If the C library has faults panic, it returns an error where f uses memory of
// the program that does not exist.
func guarded(s *proc.BoardMember, f func() error) error {
	if !s.C.Process().Data.Guarded() {
		return f()
	}
	return caught(f)
}

func caught(f func() error) (err error) {
	defer func() {
		r := recover()
		if at, ok := r.(interface{ Addr() uintptr }); ok {
			err = fmt.Errorf("%w: there is no memory at %#x", proc.ErrBuffer, at.Addr())
		} else if r != nil {
			panic(r)
		}
	}()
	return f()
}

// misread adds ErrCount to the errors that the board reports when members have called different
// operations, so that they get an error class.
func misread(err error) error {
	if _, ok := errors.AsType[*board.Mismatch](err); ok || errors.Is(err, board.ErrBoard) {
		return fmt.Errorf("%w: %w", coll.ErrCount, err)
	}
	return err
}

func do(s *proc.BoardMember, a *Call, t board.Step, block int) error {
	if a.What == OpBarrier {
		return s.Await(s.Member.Arrived(s.Member.Others(), t))
	}
	inParts := piecemeal(s, a, block) || a.What == allreduce && lent(s, a, block)
	if there := s.C.Process().Boards.CanWrite; inParts && there != nil && !there(a.recv) { // the others need this member's part
		b := *a
		b.recv = slices.Clone(a.recv)
		return cmp.Or(doParts(s, &b, t, block), fmt.Errorf("%w: there is no memory for a result of %d bytes", proc.ErrBuffer, block))
	}
	if inParts || lent(s, a, block) {
		return doParts(s, a, t, block)
	}
	if b, ok := given(s, a, block); ok {
		if err := post(s, a, t, b); err != nil {
			return err
		}
	}
	return get(s, a, t, block)
}

func given(s *proc.BoardMember, a *Call, block int) (b []byte, ok bool) {
	me := s.C.Rank()
	switch a.What {
	case OpBarrier:
		return nil, true
	case OpBcast, scatter:
		return a.Send, me == a.Root
	case gather, reduce:
		ok = me != a.Root
	default:
		ok = true
	}
	switch {
	case a.Send != nil:
		return a.Send, ok
	case a.What == allgather:
		return a.recv[me*block:][:block], ok
	default:
		return a.recv, ok
	}
}

func get(s *proc.BoardMember, a *Call, t board.Step, block int) error {
	me := s.C.Rank()
	switch a.What {
	case OpBarrier:
		return nil
	case OpBcast:
		if me == a.Root {
			return nil
		}
		return take(s, a, t, a.Root, a.Send, 0, block)
	case gather:
		return boardGather(s, a, t, block)
	case scatter:
		return boardScatter(s, a, t, block)
	case allgather:
		if a.Send != nil {
			boardCopy(s, a.recv[me*block:][:block], a.Send)
		}
		return collect(s, a, t, s.C.Size(), block)
	case alltoall:
		return boardAlltoall(s, a, t, block)
	case reduceScatterBlock:
		return boardReduceScatter(s, a, t, block)
	default:
		return boardReduce(s, a, t, block)
	}
}

func doParts(s *proc.BoardMember, a *Call, t board.Step, block int) error {
	b := *a // functions that outlive the call use it, and the caller's is not to be on the heap
	if lent(s, &b, block) {
		return doLent(s, &b, t, block)
	}
	return reducePieces(s, &b, t, block)
}

func post(s *proc.BoardMember, a *Call, t board.Step, b []byte) error {
	room, err := s.Room(t, len(b))
	if err != nil {
		return err
	}
	boardMove(s, room, b, ntcopy.Copy)
	s.Member.Post(t, uint8(a.What), len(b))
	s.Notify()
	return nil
}

// take waits for the n bytes that a member posts, and fills dst with those from offset at on.
func take(s *proc.BoardMember, a *Call, t board.Step, member int, dst []byte, at, n int) error {
	b, err := look(s, a, t, member, n)
	if err == nil {
		boardCopy(s, dst, b[at:])
	}
	return err
}

func look(s *proc.BoardMember, a *Call, t board.Step, member, n int) ([]byte, error) {
	if err := s.Await(s.Member.Posted(board.SetOf(member), t)); err != nil {
		return nil, err
	}
	return s.Member.Read(member, t, uint8(a.What), n)
}

func boardCopy(s *proc.BoardMember, dst, src []byte) {
	boardMove(s, dst, src, func(dst, src []byte) int { return copy(dst, src) })
}

// boardMove copies bytes in some way, large blocks without the process's lock.
func boardMove(s *proc.BoardMember, dst, src []byte, by func(dst, src []byte) int) {
	if len(dst) < bigStep {
		by(dst, src)
		return
	}
	p := s.C.Process()
	p.Unlock()
	defer p.Lock()
	by(dst, src)
}

// copyOwn is boardCopy, but returns an error if memory does not exist, where the other members go
// on.
func copyOwn(s *proc.BoardMember, dst, src []byte) error {
	return guarded(s, func() error {
		boardMove(s, dst, src, copyBlock)
		return nil
	})
}

// farOwn is the size in bytes from which a proc copies its own block past the caches: the copy
// would be evicted before the program reads it, and would evict the program's data.
const farOwn = fastpath.BoardStreamingCopy

func copyBlock(dst, src []byte) int {
	if len(dst) < farOwn {
		return copy(dst, src)
	}
	return ntcopy.Copy(dst, src)
}

func boardGather(s *proc.BoardMember, a *Call, t board.Step, block int) error {
	me, n := s.C.Rank(), s.C.Size()
	if me != a.Root {
		return nil
	}
	if a.Send != nil {
		boardCopy(s, a.recv[me*block:][:block], a.Send)
	}
	return collect(s, a, t, n, block)
}

func collect(s *proc.BoardMember, a *Call, t board.Step, n, block int) error {
	me := s.C.Rank()
	for i := 1; i < n; i++ {
		m := (me + i) % n
		if err := take(s, a, t, m, a.recv[m*block:][:block], 0, block); err != nil {
			return err
		}
	}
	return nil
}

func boardScatter(s *proc.BoardMember, a *Call, t board.Step, block int) error {
	me, n := s.C.Rank(), s.C.Size()
	if me != a.Root {
		return take(s, a, t, a.Root, a.recv, me*block, n*block)
	}
	if a.recv != nil { // after the post: the own block may have no memory

		boardCopy(s, a.recv, a.Send[me*block:][:block])
	}
	return nil
}

func boardAlltoall(s *proc.BoardMember, a *Call, t board.Step, block int) error {
	me, n := s.C.Rank(), s.C.Size()
	if a.Send != nil {
		boardCopy(s, a.recv[me*block:][:block], a.Send[me*block:])
	}
	for i := 1; i < n; i++ {
		m := (me + i) % n
		if err := take(s, a, t, m, a.recv[m*block:][:block], me*block, n*block); err != nil {
			return err
		}
	}
	return nil
}

// BoardMember returns this proc as a member of the communicator on the board, or nil if it has
// none. The first call may be a collective operation. All members get the same answer.
func BoardMember(c *proc.Comm) *proc.BoardMember {
	cs := &c.State().Colls
	if cs.Settled.Load() {
		return cs.OnBoard
	}
	cs.Joining.Lock()
	defer cs.Joining.Unlock()
	if !cs.Settled.Load() {
		cs.OnBoard = takeSlot(c)
		cs.Settled.Store(true)
	}
	return cs.OnBoard
}

// takeSlot makes rank 0 take a slot of the board for all members. If that fails, they use none.
func takeSlot(c *proc.Comm) *proc.BoardMember {
	s := &proc.BoardMember{C: c}
	if c.Process().Check || !s.LocateMembers() {
		return nil
	}
	var told [1]byte // the slot's number; 0 is the slot of the communicator of all procs of the host
	if c != c.Process().Comms.World {
		if c.Rank() == 0 {
			slot, _ := c.Process().Boards.Board.ReserveSlot()
			told[0] = byte(slot)
		}
		if err := Collective(c, bcastBytes(told[:])); err != nil || told[0] == 0 {
			return nil
		}
	}
	var err error
	if s.Member, err = c.Process().Boards.Board.Member(int(told[0]), c.Size(), c.Rank()); err != nil {
		return nil
	}
	agreeOnLoans(s)
	if c.Process().FastPath != nil {
		s.Started = &boardQueue{s: s} // C may start operations before Go does
	}
	s.ShareMember()
	return s
}
