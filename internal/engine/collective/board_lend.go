package collective

import (
	"encoding/binary"
	"slices"

	"github.com/openimpi/impi/core/board"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/fastpath"
)

// Long blocks are not copied to the board: a member lends them where they are, and those that need them
// copy them from its memory. It then waits until they have. One copy costs less than two, and cache
// lines that the sender has not changed since they were read last are cheap to read again.

// agreeing is what a post of agreeOnLoans is called; operations have smaller numbers.
const agreeing = 64

// lent reports whether the blocks of an operation are lent. All members get the same answer.
func lent(s *proc.BoardPlace, a *Call, block int) bool {
	n := uint64(block)
	if a.What == scatter || a.What == alltoall {
		n *= uint64(s.C.Size()) // what a member lends
	}
	if n < s.Place.Lend || s.Place.Lend == 0 {
		return false
	}
	switch a.What {
	case OpBcast:
		return n >= fastpath.BoardLendBcast
	case gather, scatter, allgather:
		return true
	case alltoall:
		return a.Send != nil // in place a member would write over what it lends
	case reduce:
		return a.op.Predefined()
	case allreduce:
		return n >= fastpath.BoardLendAllreduce && s.Place.Lend != fastpath.BoardLendOversubscribed && a.op.Predefined() && a.op.Commutative()
	default:
		return false
	}
}

// agreeOnLoans finds out whether all members can read each other's memory, and from which length on
// blocks are lent. It is the first operation of a communicator on the board. If it fails, because a
// member is gone, so does what comes next.
func agreeOnLoans(s *proc.BoardPlace) {
	p := s.C.Process()
	p.Lock()
	defer p.Unlock()
	s.Place.Lend = board.Never
	t, err := s.Enter()
	if err != nil {
		return
	}
	defer s.Leave()
	cores, err := exchangeOffers(s, t)
	if err != nil || cores == 0 {
		return
	}
	s.Place.Lend = fastpath.BoardLend
	if p.Boards.Oversubscribed(cores) {
		s.Place.Lend = fastpath.BoardLendOversubscribed
	}
}

// exchangeOffers returns how many cores the members have, or 0 if one cannot read another's memory.
func exchangeOffers(s *proc.BoardPlace, t board.Turn) (cores int, err error) {
	lends := s.C.Process().Boards.Lends
	var own board.Offer
	if lends != nil {
		own = lends.Offer
	}
	if err := s.Await(s.Place.Vacant(t, board.OfferSize())); err != nil {
		return 0, err
	}
	s.Place.PostOffer(t, agreeing, own)
	s.Notify()
	if lends != nil {
		cores = lends.Cores
	}
	for m := range s.C.Size() {
		if m == s.C.Rank() {
			continue
		}
		if err := s.Await(s.Place.Posted(board.Member(m), t)); err != nil {
			return 0, err
		}
		if err := s.Place.TakeOffer(m, t, agreeing); err != nil {
			return 0, err
		}
		if o := &s.Place.Offers[m]; cores > 0 && (o.Addr == 0 || lends.Fetch(o, o.Addr, make([]byte, 1)) != nil) {
			cores = 0
		}
	}
	return fewestCores(s, t.Step(2), cores)
}

// fewestCores returns the smallest number that a member gives.
func fewestCores(s *proc.BoardPlace, t board.Turn, cores int) (int, error) {
	s.Place.Begin(t)
	a := &Call{What: agreeing}
	if err := post(s, a, t, binary.NativeEndian.AppendUint32(nil, uint32(cores))); err != nil {
		return 0, err
	}
	for m := range s.C.Size() {
		b, err := look(s, a, t, m, 4)
		if err != nil {
			return 0, err
		}
		cores = min(cores, int(binary.NativeEndian.Uint32(b)))
	}
	return cores, nil
}

func doLent(s *proc.BoardPlace, a *Call, t board.Turn, block int) error {
	me, root, others := s.C.Rank(), board.Member(a.Root), s.Place.Others()
	switch a.What {
	case OpBcast:
		if me == a.Root {
			return lendTo(s, a, t, a.Send, others)
		}
		return fetch(s, a, t, a.Root, a.Send, 0, block)
	case gather:
		if me != a.Root {
			return lendTo(s, a, t, a.Send, root)
		}
		if err := fetchBlocks(s, a, t, 0, block); err != nil {
			return err
		}
		giveBack(s)
		if a.Send != nil {
			boardCopy(s, a.recv[me*block:][:block], a.Send)
		}
		return nil
	case scatter:
		if me != a.Root {
			return fetch(s, a, t, a.Root, a.recv, me*block, len(a.recv)*s.C.Size())
		}
		if err := lend(s, a, t, a.Send); err != nil {
			return err
		}
		if a.recv != nil {
			boardCopy(s, a.recv, a.Send[me*block:][:block])
		}
		return s.Returned(others, t)
	case allreduce:
		return allreduceLent(s, a, t, block)
	case reduce:
		if me != a.Root {
			return lendTo(s, a, t, a.Send, root)
		}
		return reduceLent(s, a, t, block)
	default:
		return exchangeLent(s, a, t, block)
	}
}

// exchangeLent is Allgather, or Alltoall not in place.
func exchangeLent(s *proc.BoardPlace, a *Call, t board.Turn, block int) error {
	me := s.C.Rank()
	own, from, at := a.recv[me*block:][:block], a.Send, 0
	switch {
	case a.What == alltoall:
		at = me * block
	case a.Send == nil:
		from = own
	}
	if err := lend(s, a, t, from); err != nil {
		return err
	}
	if a.Send != nil {
		boardCopy(s, own, from[at:][:block])
	}
	if err := fetchBlocks(s, a, t, at, len(from)); err != nil {
		return err
	}
	return s.Returned(s.Place.Others(), t)
}

// giveBack says that this member has read all that it needs of the operation.
func giveBack(s *proc.BoardPlace) {
	s.Place.End()
	s.Notify()
}

// reduceLent is what the root of a Reduce does. Only the root computes, so that it may be any NaN that
// becomes the result.
func reduceLent(s *proc.BoardPlace, a *Call, t board.Turn, block int) error {
	lenders, err := lenders(s, a, t, block)
	if err != nil {
		return err
	}
	if s.C.Size() > 2 || !a.op.Commutative() {
		return reduceLentPieces(s, a, lenders)
	}
	result, own, x, other := a.recv, a.Send, a.recv, 1-s.C.Rank()
	if own == nil {
		x = room(s, 1, block)
		own = x
	}
	if err := s.Fetch(other, lenders[other], x); err != nil {
		return err
	}
	giveBack(s)
	return apply(s, a, own, result)
}

// reduceLentPieces combines piece by piece, so that they stay in the cache.
func reduceLentPieces(s *proc.BoardPlace, a *Call, lenders []uint64) error {
	me, last, block := s.C.Rank(), s.C.Size()-1, len(a.recv)
	most := fastpath.BoardPiece / a.Kind.Size() * a.Kind.Size()
	for at := 0; at < block; at += most {
		n := min(most, block-at)
		result := a.recv[at : at+n]
		own := result
		if a.Send != nil {
			own = a.Send[at : at+n]
		} else if me != last {
			own = keep(s, 0, result)
		}
		for m := last; m >= 0; m-- {
			x := own
			if m != me {
				if x = result; m != last {
					x = room(s, 1, n)
				}
				if err := s.Fetch(m, lenders[m]+uint64(at), x); err != nil {
					return err
				}
			}
			switch {
			case m != last:
				if err := apply(s, a, x, result); err != nil {
					return err
				}
			case m == me:
				copy(result, own)
			}
		}
	}
	return nil
}

// lenders waits until all other members lend n bytes, and returns where.
func lenders(s *proc.BoardPlace, a *Call, t board.Turn, n int) ([]uint64, error) {
	at := slices.Grow(s.Lenders[:0], s.C.Size())[:s.C.Size()]
	s.Lenders = at
	for i := 1; i < len(at); i++ {
		m := (s.C.Rank() + i) % len(at)
		addr, err := find(s, a, t, m, n)
		if err != nil {
			return nil, err
		}
		at[m] = addr
	}
	return at, nil
}

// lend lends b to the other members.
func lend(s *proc.BoardPlace, a *Call, t board.Turn, b []byte) error {
	if err := s.Await(s.Place.Vacant(t, board.LendSize)); err != nil {
		return err
	}
	s.Place.LendOut(t, uint8(a.What), b)
	s.Notify()
	return nil
}

// lendTo lends b, and waits until the members have what they need of it.
func lendTo(s *proc.BoardPlace, a *Call, t board.Turn, b []byte, members uint64) error {
	if err := lend(s, a, t, b); err != nil {
		return err
	}
	return s.Returned(members, t)
}

// find waits until a member lends n bytes, and returns where.
func find(s *proc.BoardPlace, a *Call, t board.Turn, member, n int) (uint64, error) {
	if err := s.Await(s.Place.Posted(board.Member(member), t)); err != nil {
		return 0, err
	}
	return s.Place.Lent(member, t, uint8(a.What), n)
}

// fetch fills to with the bytes from offset at on of the n that a member lends.
func fetch(s *proc.BoardPlace, a *Call, t board.Turn, member int, to []byte, at, n int) error {
	addr, err := find(s, a, t, member, n)
	if err != nil {
		return err
	}
	return s.Fetch(member, addr+uint64(at), to)
}

// fetchBlocks fills the blocks of the other members with what each lends, n bytes, from offset at on.
func fetchBlocks(s *proc.BoardPlace, a *Call, t board.Turn, at, n int) error {
	me, size := s.C.Rank(), s.C.Size()
	block := len(a.recv) / size
	for i := 1; i < size; i++ {
		m := (me + i) % size
		if err := fetch(s, a, t, m, a.recv[m*block:][:block], at, n); err != nil {
			return err
		}
	}
	return nil
}
