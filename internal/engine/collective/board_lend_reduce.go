package collective

import (
	"github.com/openimpi/impi/core/board"
	"github.com/openimpi/impi/core/ntcopy"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/fastpath"
)

// allreduceLent is Allreduce where members lend their operands: each combines its part of all of them,
// lends the result in a second step, and all copy the parts. An element is combined by one member, so
// all get the same to the last bit.
func allreduceLent(s *proc.BoardPlace, a *Call, t board.Turn, block int) error {
	me, size, own := s.C.Rank(), s.C.Size(), a.Send
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
	from, to := partOf(s, a, block, me)
	if err := combinePart(s, a, at, from, own[from:to], a.recv[from:to]); err != nil {
		return err
	}
	parts := t.Step(2)
	s.Place.Begin(parts)
	if err := lend(s, a, parts, a.recv[from:to]); err != nil {
		return err
	}
	// In place, the part that member m has combined is written over operands that m has read by then,
	// and nobody else reads.
	for i := 1; i < size; i++ {
		m := (me + i) % size
		from, to := partOf(s, a, block, m)
		if err := fetch(s, a, parts, m, a.recv[from:to], 0, to-from); err != nil {
			return err
		}
	}
	return s.Returned(s.Place.Others(), parts)
}

// combinePart combines a part of all operands, which begins at offset from of each: the own one, and
// those at addresses of the other members. It does so piece by piece, so that they stay in the cache,
// and writes the result by stores that leave nothing there: between cores without a common cache it
// takes five times as long to read what another core has just written otherwise.
func combinePart(s *proc.BoardPlace, a *Call, at []uint64, from int, own, result []byte) error {
	most := fastpath.BoardPiece / a.Kind.Size() * a.Kind.Size()
	for done := 0; done < len(result); done += most {
		n := min(most, len(result)-done)
		sum := room(s, 1, n)
		for i := 1; i < len(at); i++ {
			m, x := (s.C.Rank()+i)%len(at), sum
			if i > 1 {
				x = room(s, 2, n)
			}
			if err := s.Fetch(m, at[m]+uint64(from+done), x); err != nil {
				return err
			}
			if i == 1 {
				x = own[done:][:n]
			}
			if err := apply(s, a, x, sum); err != nil {
				return err
			}
		}
		boardMove(s, result[done:][:n], sum, ntcopy.Copy)
	}
	return nil
}
