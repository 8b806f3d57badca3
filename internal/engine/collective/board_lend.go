package collective

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/openimpi/impi/core/board"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/fastpath"
	"github.com/openimpi/impi/internal/wireup"
)

// Long blocks are not copied to the board: a member lends them in place, and the members that need
// them copy them from its memory. It then waits until they have. One copy costs less than two, and
// cache lines that the sender has not changed since they were last read are cheap to read again.

// Operation numbers of posts of agreeOnLoans and of constructors; operations have smaller numbers.
const (
	agreeing     = 64
	constructing = 65
)

// lent reports whether the blocks of an operation are lent. All members get the same answer.
func lent(s *proc.BoardMember, a *Call, block int) bool {
	n := uint64(block)
	if a.What == scatter || a.What == alltoall {
		n *= uint64(s.C.Size()) // bytes that a member lends
	}
	if n < s.Member.Lend || s.Member.Lend == 0 || n > mostLent {
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
		return n >= fastpath.BoardLendAllreduce && s.Member.Lend != fastpath.BoardLendOversubscribed && a.op.Predefined() && a.op.Commutative()
	default:
		return false
	}
}

// agreeOnLoans finds out whether all members can read each other's memory, and from which length on
// blocks are lent. It is the first operation of a communicator on the board. If it fails, because a
// member is gone, so does what comes next.
func agreeOnLoans(s *proc.BoardMember) {
	p := s.C.Process()
	p.Lock()
	defer p.Unlock()
	s.Member.Lend = board.NeverLend
	t, err := s.Enter()
	if err != nil {
		return
	}
	defer s.Leave()
	cores, err := exchangeKeys(s, t)
	if err != nil || slices.Contains(cores, board.Cores{}) {
		return
	}
	s.Member.Lend = fastpath.BoardLend
	if oversubscribed(cores, p.Boards.Procs()) {
		s.Member.Lend = fastpath.BoardLendOversubscribed
	} else if p.Native == nil {
		s.Member.Rechecks = 1
	}
}

// oversubscribed reports whether the host's procs, of which there are procs, have to share cores,
// as far as the cores of a communicator's members show.
func oversubscribed(members []board.Cores, procs int) bool {
	bound := map[uint32]uint32{} // number of cores by the first one
	for _, c := range members {
		bound[c.First] = max(bound[c.First], c.Count)
	}
	if len(bound) == len(members) {
		return false // each proc has its own cores, and so have the host's other procs
	}
	cores := 0
	for _, n := range bound {
		cores += int(n)
	}
	return procs > cores
}

// exchangeKeys returns the cores of the members; those of a member that cannot read another's
// memory are the zero value.
func exchangeKeys(s *proc.BoardMember, t board.Step) ([]board.Cores, error) {
	lends := s.C.Process().Boards.Lending
	var own board.MemoryKey
	var cores board.Cores
	if lends != nil {
		own, cores = lends.Key, lends.Cores
	}
	if err := s.Await(s.Member.Vacant(t, board.KeySize())); err != nil {
		return nil, err
	}
	s.Member.PostKey(t, agreeing, own)
	s.Notify()
	for m := range s.C.Size() {
		if m == s.C.Rank() {
			continue
		}
		if err := s.Await(s.Member.Posted(board.SetOf(m), t)); err != nil {
			return nil, err
		}
		if err := s.Member.ReadKey(m, t, agreeing); err != nil {
			return nil, err
		}
		if o := &s.Member.Keys[m]; cores.Count > 0 && (o.Addr == 0 || lends.Fetch(o, o.Addr, make([]byte, 1)) != nil) {
			cores = board.Cores{}
		}
	}
	return exchangeCores(s, t.Step(2), cores)
}

func exchangeCores(s *proc.BoardMember, t board.Step, own board.Cores) ([]board.Cores, error) {
	s.Member.Begin(t)
	a := &Call{What: agreeing}
	b := binary.NativeEndian.AppendUint32(nil, own.Count)
	if err := post(s, a, t, binary.NativeEndian.AppendUint32(b, own.First)); err != nil {
		return nil, err
	}
	all := make([]board.Cores, s.C.Size())
	for m := range all {
		b, err := look(s, a, t, m, 8)
		if err != nil {
			return nil, err
		}
		all[m] = board.Cores{Count: binary.NativeEndian.Uint32(b), First: binary.NativeEndian.Uint32(b[4:])}
	}
	return all, nil
}

func doLent(s *proc.BoardMember, a *Call, t board.Step, block int) error {
	me, root, others := s.C.Rank(), board.SetOf(a.Root), s.Member.Others()
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
		asked, err := fetchBlocks(s, a, t, 0, block)
		if err != nil {
			return err
		}
		giveBack(s)
		if a.Send != nil {
			err = copyOwn(s, a.recv[me*block:][:block], a.Send)
		}
		return cmp.Or(err, (&pieces{op: a.What, begun: t, behind: t, asked: asked, length: same(block), take: blocks(s, a, 0)}).exchange(s))
	case scatter:
		if me != a.Root {
			return fetch(s, a, t, a.Root, a.recv, me*block, len(a.recv)*s.C.Size())
		}
		if err := lend(s, a, t, a.Send); err != nil {
			return err
		}
		var err error
		if a.recv != nil {
			err = guarded(s, func() error {
				boardCopy(s, a.recv, a.Send[me*block:][:block]) // while the others read the rest
				return nil
			})
		}
		return cmp.Or(err, returned(s, a.What, t, a.Send, others))
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
func exchangeLent(s *proc.BoardMember, a *Call, t board.Step, block int) error {
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
	asked, err := fetchBlocks(s, a, t, at, len(from))
	giveBack(s)
	if a.Send != nil {
		err = cmp.Or(err, copyOwn(s, own, from[at:][:block]))
	}
	if err != nil { // the others read on; those that do something else do not
		s.Member.Done()
		return cmp.Or(err, returned(s, a.What, t, from, s.Member.Lenders(t, uint8(a.What), len(from))))
	}
	if err := s.Returned(s.Member.Others(), t); err != nil {
		return err
	}
	return (&pieces{
		op: a.What, begun: t, behind: t, lent: from, askers: s.Member.Askers(t, s.Member.Others()),
		asked: asked, length: same(len(from)), take: blocks(s, a, at),
	}).exchange(s)
}

// giveBack announces that this member has read all that it needs of the operation.
func giveBack(s *proc.BoardMember) {
	s.Member.End()
	s.Notify()
}

// reduceLent is what the root of a Reduce does. Only the root computes, so that it may be any NaN
// that becomes the result.
func reduceLent(s *proc.BoardMember, a *Call, t board.Step, block int) error {
	lenders, err := lenders(s, a, t, block)
	if err != nil {
		return err
	}
	if s.C.Size() > 2 || !a.op.Commutative() {
		return reduceLentPieces(s, a, t, lenders)
	}
	return reduceLentPair(s, a, t, lenders[1-s.C.Rank()])
}

// reduceLentPair is reduceLentPieces for two members, whose order makes no difference.
func reduceLentPair(s *proc.BoardMember, a *Call, t board.Step, addr uint64) error {
	block, most := len(a.recv), fastpath.BoardPiece/a.Kind.Size()*a.Kind.Size()
	for at := 0; at < block; at += most {
		n := min(most, block-at)
		result := a.recv[at : at+n]
		own, x := []byte(nil), result
		if a.Send != nil {
			own = a.Send[at : at+n]
		} else {
			x = room(s, 1, n)
			own = x
		}
		if err := s.Fetch(1-s.C.Rank(), addr+uint64(at), x); err != nil {
			return reduceAsked(s, a, t, at, err)
		}
		if at+n == block {
			giveBack(s)
		}
		if err := apply(s, a, own, result); err != nil {
			return err
		}
	}
	return nil
}

// reduceLentPieces combines piece by piece, so that they stay in the cache.
func reduceLentPieces(s *proc.BoardMember, a *Call, t board.Step, lenders []uint64) error {
	me, last, block := s.C.Rank(), s.C.Size()-1, len(a.recv)
	most := fastpath.BoardPiece / a.Kind.Size() * a.Kind.Size()
	for at := 0; at < block; at += most {
		n := min(most, block-at)
		result := a.recv[at : at+n]
		own := ownPiece(s, a, at, n)
		for m := last; m >= 0; m-- {
			x := own
			if m != me {
				if x = result; m != last {
					x = room(s, 1, n)
				}
				if err := s.Fetch(m, lenders[m]+uint64(at), x); err != nil {
					if a.Send == nil {
						copy(result, own)
					}
					return reduceAsked(s, a, t, at, err)
				}
			}
			if err := addPiece(s, a, m, x, result); err != nil {
				return err
			}
		}
	}
	return nil
}

// ownPiece returns a piece of this member's operand, as a copy if the result is written over it.
func ownPiece(s *proc.BoardMember, a *Call, at, n int) []byte {
	if a.Send != nil {
		return a.Send[at : at+n]
	}
	return keep(s, 0, a.recv[at:at+n])
}

// addPiece combines a piece of member m's operand with those of all later ranks.
func addPiece(s *proc.BoardMember, a *Call, m int, x, result []byte) error {
	if m < s.C.Size()-1 {
		return apply(s, a, x, result)
	}
	if &x[0] != &result[0] {
		boardCopy(s, result, x)
	}
	return nil
}

// lenders waits until all other members lend n bytes, and returns where.
func lenders(s *proc.BoardMember, a *Call, t board.Step, n int) ([]uint64, error) {
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

func lend(s *proc.BoardMember, a *Call, t board.Step, b []byte) error {
	if err := s.Await(s.Member.Vacant(t, board.LendSize)); err != nil {
		return err
	}
	s.Member.PostLent(t, uint8(a.What), b)
	s.Notify()
	return nil
}

// lendTo lends b, and waits until the members have what they need of it.
func lendTo(s *proc.BoardMember, a *Call, t board.Step, b []byte, members uint64) error {
	if err := lend(s, a, t, b); err != nil {
		return err
	}
	return returned(s, a.What, t, b, members)
}

// find waits until a member lends n bytes, and returns where.
func find(s *proc.BoardMember, a *Call, t board.Step, member, n int) (uint64, error) {
	if err := s.Await(s.Member.Posted(board.SetOf(member), t)); err != nil {
		return 0, err
	}
	return s.Member.LentAddr(member, t, uint8(a.What), n)
}

// fetch fills to with the bytes from offset at on of the n that a member lends.
func fetch(s *proc.BoardMember, a *Call, t board.Step, member int, to []byte, at, n int) error {
	addr, err := find(s, a, t, member, n)
	if err == nil {
		err = s.Fetch(member, addr+uint64(at), to)
	}
	if !errors.Is(err, wireup.ErrUnreadable) {
		return err
	}
	s.Member.Ask(t, board.SetOf(member))
	giveBack(s)
	return (&pieces{op: a.What, begun: t, behind: t, asked: board.SetOf(member), length: same(n), take: func(_, from int, piece []byte) error {
		copyPart(s, to, at, piece, from)
		return nil
	}}).exchange(s)
}

// fetchBlocks fills the blocks of the other members with what each lends, n bytes, from offset at
// on. It returns the members whose memory it could not read, and which it has asked. If there is no
// memory for what one lends it goes on, as the others do.
func fetchBlocks(s *proc.BoardMember, a *Call, t board.Step, at, n int) (asked uint64, err error) {
	me, size := s.C.Rank(), s.C.Size()
	block := len(a.recv) / size
	for i := 1; i < size; i++ {
		m := (me + i) % size
		addr, bad := find(s, a, t, m, n)
		if bad != nil {
			return 0, bad
		}
		bad = s.Fetch(m, addr+uint64(at), a.recv[m*block:][:block])
		switch {
		case errors.Is(bad, wireup.ErrUnreadable):
			asked |= board.SetOf(m)
		default:
			err = cmp.Or(err, bad)
		}
	}
	if err == nil && asked != 0 {
		s.Member.Ask(t, asked)
	}
	return asked, err
}

// blocks returns a taker that fills the blocks of members with the pieces of what they were asked
// for, from offset at on.
func blocks(s *proc.BoardMember, a *Call, at int) taker {
	block := len(a.recv) / s.C.Size()
	return func(m, from int, piece []byte) error {
		copyPart(s, a.recv[m*block:][:block], at, piece, from)
		return nil
	}
}
