package mpi

import (
	"errors"
	"fmt"

	"github.com/openimpi/impi/core/board"
	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/datatype"
)

// bcastBytes is a Bcast of rank 0 by messages.
func bcastBytes(b []byte) func(*coll.Planner, *coll.Schedule) error {
	return func(p *coll.Planner, s *coll.Schedule) error { return p.Bcast(s, b, datatype.Byte, 0) }
}

// boardLimits are the longest blocks that go by way of the board, in bytes: up to
// them it is faster than messages, see docs/decisions/0039-experiments-on-speed.md.
var boardLimits = [...]int{
	barrier: 0, bcast: board.MaxPost, gather: 64 << 10, scatter: 64 << 10, allgatherAll: 64 << 10,
	alltoall: 64 << 10, reduce: 64 << 10, allreduceAll: 4 << 10,
}

// pairLimit is the limit of two members, who copy no less by way of the board than
// by messages.
const pairLimit = 8 << 10

// boardPieces is up to how many bytes vectors of reductions go by way of the board piece
// by piece.
const boardPieces = 16 << 20

// fits tells whether the operation goes by way of the board, and how many bytes
// each member's block has, which is the same for all. What is wrong with the arguments
// is the planner's to say, and does not fit.
func (s *boardPlace) fits(a *call) (block int, ok bool) {
	if a.what == barrier {
		return 0, true
	}
	n, me := s.c.Size(), s.c.Rank()
	if int(a.what) >= len(boardLimits) || boardLimits[a.what] == 0 || a.root < 0 || a.root >= n || !a.kind.Valid() {
		return 0, false
	}
	all := 1 // blocks in a message of this member's
	switch a.what {
	case bcast:
		block, ok = len(a.send), true
	case gather:
		block, ok = share(a.send, a.recv, n, me == a.root)
	case scatter:
		block, ok = share(a.recv, a.send, n, me == a.root)
		all = n
	case allgatherAll:
		block, ok = share(a.send, a.recv, n, true)
	case alltoall:
		block, ok = len(a.recv)/n, len(a.recv)%n == 0 && (a.send == nil || len(a.send) == len(a.recv))
		all = n
	default:
		block, ok = operands(a, me == a.root || a.what == allreduceAll)
	}
	if !ok || block == 0 || block%a.kind.Size() != 0 || overlapping(a, me) {
		return 0, false
	}
	if n == 2 && a.what != bcast && block > pairLimit {
		return 0, false
	}
	return block, block <= boardLimits[a.what] && all*block <= board.MaxPost || s.piecemeal(a, block)
}

// piecemeal tells whether a reduction too long for one post is done in pieces.
func (s *boardPlace) piecemeal(a *call, block int) bool {
	return (a.what == reduce || a.what == allreduceAll) && block > boardLimits[a.what] && block <= boardPieces && a.op.Commutative() && a.op.Predefined()
}

// share is the length of a block of which those that have whole have one for each of
// n members, and may leave out their own.
func share(part, whole []byte, n int, has bool) (block int, ok bool) {
	if !has {
		return len(part), true
	}
	if block = len(part); part == nil {
		block = len(whole) / n
	}
	return block, block*n == len(whole)
}

// operands is the length of a reduction's vectors.
func operands(a *call, result bool) (int, bool) {
	if a.op.Check(a.kind) != nil {
		return 0, false
	}
	if !result {
		return len(a.send), true
	}
	return len(a.recv), a.send == nil || len(a.send) == len(a.recv)
}

// overlapping tells whether the buffers that matter here overlap.
func overlapping(a *call, me int) bool {
	switch a.what {
	case bcast:
		return false
	case gather, scatter, reduce:
		if me != a.root {
			return false
		}
	default:
	}
	return coll.Overlap(a.send, a.recv)
}

// run does an operation that fits.
func (s *boardPlace) run(a *call, block int) error {
	p := s.c.p
	p.lock()
	defer p.unlock()
	t, err := s.enter()
	if err != nil {
		return err
	}
	err = s.do(a, t, block)
	s.leave()
	if err != nil {
		return misread(err)
	}
	return nil
}

// misread gives the errors of members that do not do the same their class.
func misread(err error) error {
	var m *board.Mismatch
	if errors.As(err, &m) || errors.Is(err, board.ErrBoard) {
		return fmt.Errorf("%w: %w", coll.ErrCount, err)
	}
	return err
}

func (s *boardPlace) do(a *call, t board.Turn, block int) error {
	me := s.c.Rank()
	switch a.what {
	case barrier:
		return s.await(s.place.Arrived(s.place.Members(), t))
	case bcast:
		if me == a.root {
			return s.post(a, t, a.send)
		}
		return s.take(a, t, a.root, a.send, 0, block)
	case gather:
		return s.gather(a, t, block)
	case scatter:
		return s.scatter(a, t, block)
	case allgatherAll:
		return s.allgather(a, t, block)
	case alltoall:
		return s.alltoall(a, t, block)
	default:
		if s.piecemeal(a, block) {
			return s.reducePieces(a, t, block)
		}
		return s.reduce(a, t, block)
	}
}

// post posts b.
func (s *boardPlace) post(a *call, t board.Turn, b []byte) error {
	room, err := s.room(t, len(b))
	if err != nil {
		return err
	}
	s.copy(room, b)
	s.place.Post(t, uint8(a.what), len(b))
	s.notify()
	return nil
}

// take copies to dst what is at some offset of the n bytes that a member has posted.
func (s *boardPlace) take(a *call, t board.Turn, member int, dst []byte, at, n int) error {
	b, err := s.look(a, t, member, n)
	if err == nil {
		s.copy(dst, b[at:])
	}
	return err
}

// look waits for the n bytes that a member posts.
func (s *boardPlace) look(a *call, t board.Turn, member, n int) ([]byte, error) {
	if err := s.await(s.place.Posted(board.Member(member), t)); err != nil {
		return nil, err
	}
	return s.place.Look(member, t, uint8(a.what), n)
}

// copy copies; much of it without the lock.
func (s *boardPlace) copy(dst, src []byte) {
	if len(dst) < bigStep {
		copy(dst, src)
		return
	}
	p := s.c.p
	p.unlock()
	copy(dst, src)
	p.lock()
}

func (s *boardPlace) gather(a *call, t board.Turn, block int) error {
	me, n := s.c.Rank(), s.c.Size()
	if me != a.root {
		return s.post(a, t, a.send)
	}
	if a.send != nil {
		s.copy(a.recv[me*block:][:block], a.send)
	}
	return s.collect(a, t, n, block)
}

// collect takes the block of each other member.
func (s *boardPlace) collect(a *call, t board.Turn, n, block int) error {
	me := s.c.Rank()
	for i := 1; i < n; i++ {
		m := (me + i) % n
		if err := s.take(a, t, m, a.recv[m*block:][:block], 0, block); err != nil {
			return err
		}
	}
	return nil
}

func (s *boardPlace) scatter(a *call, t board.Turn, block int) error {
	me, n := s.c.Rank(), s.c.Size()
	if me != a.root {
		return s.take(a, t, a.root, a.recv, me*block, n*block)
	}
	if a.recv != nil {
		s.copy(a.recv, a.send[me*block:][:block])
	}
	return s.post(a, t, a.send)
}

func (s *boardPlace) allgather(a *call, t board.Turn, block int) error {
	own := a.recv[s.c.Rank()*block:][:block]
	if a.send != nil {
		s.copy(own, a.send)
	}
	if err := s.post(a, t, own); err != nil {
		return err
	}
	return s.collect(a, t, s.c.Size(), block)
}

func (s *boardPlace) alltoall(a *call, t board.Turn, block int) error {
	me, n := s.c.Rank(), s.c.Size()
	send := a.send
	if send == nil {
		send = a.recv
	} else {
		s.copy(a.recv[me*block:][:block], send[me*block:])
	}
	if err := s.post(a, t, send); err != nil {
		return err
	}
	for i := 1; i < n; i++ {
		m := (me + i) % n
		if err := s.take(a, t, m, a.recv[m*block:][:block], me*block, n*block); err != nil {
			return err
		}
	}
	return nil
}

// boardPlace gives the communicator's place on the board, nil if it has none. The first
// time it may be a collective operation. All members come to the same answer.
func (c *Comm) boardPlace() *boardPlace {
	cs := &c.colls
	if cs.settled.Load() {
		return cs.place
	}
	cs.seating.Lock()
	defer cs.seating.Unlock()
	if !cs.settled.Load() {
		cs.place = c.takePlace()
		cs.settled.Store(true)
	}
	return cs.place
}

// takeSeat has rank 0 take a slot of the board for all members. Where that fails,
// they do without.
func (c *Comm) takePlace() *boardPlace {
	s := &boardPlace{c: c}
	if c.p.check || !s.locate() {
		return nil
	}
	var told [1]byte // the slot; 0 is that of the communicator of all procs of the host
	if c != c.p.world {
		if c.Rank() == 0 {
			slot, _ := c.p.boards.board.Take()
			told[0] = byte(slot)
		}
		if err := c.collective(bcastBytes(told[:])); err != nil || told[0] == 0 {
			return nil
		}
	}
	var err error
	if s.place, err = c.p.boards.board.Place(int(told[0]), c.Size(), c.Rank()); err != nil {
		return nil
	}
	return s
}
