package collective

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/openimpi/impi/core/board"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/fastpath"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/sdk/support/ntcopy"
)

// allreduceLent is Allreduce where members lend their operands: each combines its part of all of
// them, lends the result in a second step, and all copy the parts. An element is combined by one
// member, so all get the same to the last bit, as Allreduce promises (MPI-4.1, 6.9.6).
func allreduceLent(s *proc.BoardMember, a *Call, t board.Step, block int) error {
	if s.C.Size() == 2 && block <= mostByPair {
		return allreduceLentPair(s, a, t, block)
	}
	me, own := s.C.Rank(), a.Send
	if own == nil {
		own = a.recv
	}
	if err := lend(s, a, t, own); err != nil {
		return err
	}
	at, err := lenders(s, a, t, block)
	if err != nil {
		return err
	}
	x := &parts{s: s, a: a, t: t, step: t.Step(2), block: block, at: at}
	from, to := partOf(s, a, block, me)
	x.done[me], err = combinePart(s, a, at, from, own[from:to], a.recv[from:to])
	if err != nil && !errors.Is(err, wireup.ErrUnreadable) {
		return err
	}
	s.Member.Begin(x.step)
	if err == nil {
		err = lend(s, a, x.step, a.recv[from:to])
	} else {
		err = post(s, a, x.step, binary.NativeEndian.AppendUint64(nil, uint64(x.done[me])))
	}
	if err != nil {
		return err
	}
	return cmp.Or(x.find(), x.fetch(), x.finish())
}

// mostByPair is the size in bytes up to which two members each combine all.
const mostByPair = 1 << 20

// allreduceLentPair is allreduceLent for two members. Each combines all of both operands, in the
// order of the ranks, so that both get the same: reading a part of the result that the other has
// just written would take longer than computing it.
func allreduceLentPair(s *proc.BoardMember, a *Call, t board.Step, block int) error {
	me, other, b := s.C.Rank(), 1-s.C.Rank(), *a
	if a.Send == nil { // the other reads the operand until the end
		b.Send, b.recv = a.recv, room(s, 2, block)
	}
	if err := lend(s, &b, t, b.Send); err != nil {
		return err
	}
	addr, err := find(s, &b, t, other, block)
	if err != nil {
		return err
	}
	most := board.MaxPost / a.Kind.Size() * a.Kind.Size()
	at, asked := 0, uint64(0)
	for ; at < block && asked == 0; at += most {
		n := min(most, block-at)
		own, result := b.Send[at:at+n], b.recv[at:at+n]
		x := result
		if me == 1 {
			x = room(s, 1, n)
		}
		switch err := s.Fetch(other, addr+uint64(at), x); {
		case errors.Is(err, wireup.ErrUnreadable):
			asked = board.SetOf(other)
			s.Member.Ask(t, asked)
			at -= most
			continue
		case err != nil:
			return err
		}
		if me == 1 {
			boardCopy(s, result, own)
			own = x
		}
		if err := apply(s, &b, own, result); err != nil {
			return err
		}
	}
	if err := s.Returned(board.SetOf(other), t); err != nil {
		return err
	}
	err = (&pieces{
		op: a.What, size: most, begun: t, behind: t, lent: b.Send, askers: s.Member.Askers(t, board.SetOf(other)),
		asked: asked, length: same(block), take: adder(s, &b, 0, block, most, at),
	}).exchange(s)
	if err == nil && a.Send == nil {
		boardCopy(s, a.recv, b.recv)
	}
	return err
}

type parts struct {
	s     *proc.BoardMember
	a     *Call
	t     board.Step
	step  board.Step // the step in which operands are lent
	block int
	at    []uint64 // their addresses

	// Number of elements that each member has combined of its part. A member that could not read
	// all operands posts this number instead of lending its part, and all members combine the rest
	// for themselves.
	done [board.MaxProcs]int
}

func (x *parts) length(m int) int {
	from, to := partOf(x.s, x.a, x.block, m)
	return to - from
}

// find waits for all parts. Until then no operand of another member's part may be overwritten, in
// place.
func (x *parts) find() error {
	me, size := x.s.C.Rank(), x.s.C.Size()
	for i := 1; i < size; i++ {
		m := (me + i) % size
		addr, err := find(x.s, x.a, x.step, m, x.length(m))
		x.at[m], x.done[m] = addr, x.length(m)
		if !isMismatch(err) {
			if err != nil {
				return err
			}
			continue
		}
		b, err := x.s.Member.Read(m, x.step, uint8(x.a.What), 8)
		if err != nil {
			return err
		}
		done := binary.NativeEndian.Uint64(b)
		if done >= uint64(x.length(m)) || int(done)%x.piece() != 0 {
			return fmt.Errorf("%w: rank %d says that it has combined %d bytes of %d", board.ErrBoard, m, done, x.length(m))
		}
		x.done[m] = int(done)
	}
	return nil
}

func isMismatch(err error) bool {
	var m *board.Mismatch
	return errors.As(err, &m)
}

// piece is the size of the pieces in which operands are combined.
func (x *parts) piece() int { return board.MaxPost / x.a.Kind.Size() * x.a.Kind.Size() }

func (x *parts) fetch() error {
	s, me, size := x.s, x.s.C.Rank(), x.s.C.Size()
	var asked uint64
	for i := 1; i < size; i++ {
		m := (me + i) % size
		if x.done[m] < x.length(m) {
			continue
		}
		from, to := partOf(s, x.a, x.block, m)
		err := s.Fetch(m, x.at[m], x.a.recv[from:to])
		switch {
		case errors.Is(err, wireup.ErrUnreadable):
			asked |= board.SetOf(m)
		case err != nil:
			return err
		}
	}
	if asked != 0 {
		s.Member.Ask(x.step, asked)
	}
	if err := s.Returned(s.Member.Others(), x.step); err != nil {
		return err
	}
	from, to := partOf(s, x.a, x.block, me)
	return (&pieces{
		op: x.a.What, size: x.piece(), begun: x.t, behind: x.step, lent: x.a.recv[from:to],
		askers: s.Member.Askers(x.step, s.Member.Others()), asked: asked, length: x.length,
		take: func(m, at int, piece []byte) error {
			from, _ := partOf(s, x.a, x.block, m)
			boardCopy(s, x.a.recv[from+at:][:len(piece)], piece)
			return nil
		},
	}).exchange(s)
}

// finish makes all members combine what is left of the parts.
func (x *parts) finish() error {
	s, most := x.s, x.piece()
	behind := x.step
	skip := func(n int) { behind = behind.Step(2 * ((n + most - 1) / most)) }
	longest := 0
	for m := range s.C.Size() {
		longest = max(longest, x.length(m))
	}
	skip(longest) // fetch may have had this many steps
	for m := range s.C.Size() {
		if x.done[m] == x.length(m) {
			continue
		}
		if err := x.rest(m, behind); err != nil {
			return err
		}
		skip(x.length(m))
	}
	return nil
}

// rest distributes what member m has combined of its part, and combines the rest.
func (x *parts) rest(m int, behind board.Step) error {
	s, a, others := x.s, x.a, x.s.Member.Others()
	from, to := partOf(s, a, x.block, m)
	middle := from + x.done[m]
	own := a.Send
	if own == nil {
		own = a.recv
	}
	whole := &pieces{op: a.What, size: x.piece(), begun: x.t, behind: behind, length: same(x.done[m]), take: func(_, at int, piece []byte) error {
		boardCopy(s, a.recv[from+at:][:len(piece)], piece)
		return nil
	}}
	if m == s.C.Rank() {
		whole.lent, whole.askers = a.recv[from:middle], others
	} else {
		whole.asked = board.SetOf(m)
	}
	if err := whole.exchange(s); err != nil {
		return err
	}
	return (&pieces{
		op: a.What, size: x.piece(), begun: x.t, behind: behind.Step(2 * (x.done[m] / x.piece())), lent: own[middle:to], askers: others,
		asked: others, length: same(to - middle), take: adder(s, a, middle, to-middle, x.piece(), 0),
	}).exchange(s)
}

// combinePart combines a part of all operands, which begins at offset from of each: the own one,
// and those at addresses of the other members. It does so piece by piece, so that they stay in the
// cache, and writes the result by stores that leave nothing there: between cores without a common
// cache it takes five times as long to read what another core has just written otherwise. It
// returns how many bytes it has combined.
func combinePart(s *proc.BoardMember, a *Call, at []uint64, from int, own, result []byte) (done int, err error) {
	most := fastpath.BoardPiece / a.Kind.Size() * a.Kind.Size()
	for done < len(result) {
		n := min(most, len(result)-done)
		sum := room(s, 1, n)
		for i := 1; i < len(at); i++ {
			m, x := (s.C.Rank()+i)%len(at), sum
			if i > 1 {
				x = room(s, 2, n)
			}
			if err := s.Fetch(m, at[m]+uint64(from+done), x); err != nil {
				return done, err
			}
			if i == 1 {
				x = own[done:][:n]
			}
			if err := apply(s, a, x, sum); err != nil {
				return done, err
			}
		}
		boardMove(s, result[done:][:n], sum, ntcopy.Copy)
		done += n
	}
	return done, nil
}
