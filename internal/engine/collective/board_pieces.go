package collective

import (
	"github.com/openimpi/impi/core/board"
	"github.com/openimpi/impi/internal/engine/proc"
)

// reducePieces is the reduction of long vectors by a commutative operation, whose operands may be
// combined in any order (MPI-4.1, 6.9.1). All members post each piece. Each combines its part of
// all of them in its own post, from where the members that get the result collect the parts. An
// element is combined by one member, so all get the same to the last bit.
func reducePieces(s *proc.BoardMember, a *Call, t board.Step, block int) error {
	own := a.Send
	if own == nil {
		own = a.recv
	}
	most := board.MaxPost / a.Kind.Size() * a.Kind.Size()
	for at, step := 0, 0; at < block; at, step = at+most, step+2 {
		n := min(most, block-at)
		if step > 0 {
			s.Member.Begin(t.Step(step))
		}
		if err := combinePiece(s, a, t.Step(step), own[at:at+n]); err != nil {
			return err
		}
		s.Member.HoldUntil(t.Step(step), n, t.Step(step+1))
		s.Member.Begin(t.Step(step + 1))
		s.Notify()
		if a.What == reduce && s.C.Rank() != a.Root {
			continue
		}
		if err := collectPiece(s, a, t.Step(step), a.recv[at:at+n]); err != nil {
			return err
		}
	}
	return nil
}

// combinePiece posts a piece of this member's operand, and combines its part of that piece of all
// operands in its own post.
func combinePiece(s *proc.BoardMember, a *Call, t board.Step, own []byte) error {
	if err := post(s, a, t, own); err != nil {
		return err
	}
	n, me := s.C.Size(), s.C.Rank()
	from, to := partOf(s, a, len(own), me)
	result := s.Member.Room(t, len(own))[from:to]
	for i := 1; i < n; i++ {
		x, err := look(s, a, t, (me+i)%n, len(own))
		if err != nil {
			return err
		}
		if err := apply(s, a, x[from:to], result); err != nil {
			return err
		}
	}
	return nil
}

// collectPiece copies all parts of a piece to into, once they are combined.
func collectPiece(s *proc.BoardMember, a *Call, t board.Step, into []byte) error {
	n, me := s.C.Size(), s.C.Rank()
	for i := range n {
		m := (me + i) % n
		if m != me {
			if err := s.Await(s.Member.Arrived(board.SetOf(m), t.Step(1))); err != nil {
				return err
			}
		}
		x, err := s.Member.Read(m, t, uint8(a.What), len(into))
		if err != nil {
			return err
		}
		from, to := partOf(s, a, len(into), m)
		boardCopy(s, into[from:to], x[from:to])
	}
	return nil
}

func partOf(s *proc.BoardMember, a *Call, piece, member int) (from, to int) {
	size, n := a.Kind.Size(), s.C.Size()
	count := piece / size
	return count * member / n * size, count * (member + 1) / n * size
}
