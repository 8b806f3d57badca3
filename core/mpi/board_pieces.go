package mpi

import "github.com/openimpi/impi/core/board"

// reducePieces is the reduction of long vectors by an operation that is commutative.
// Of each piece, which all have posted, each member combines its part where it has posted its
// own, and who gets the result collects the parts from there. Each element is
// combined by one member, so that all see the same to the last bit.
func (s *boardPlace) reducePieces(a *call, t board.Turn, block int) error {
	own := a.send
	if own == nil {
		own = a.recv
	}
	most := board.MaxPost / a.kind.Size() * a.kind.Size()
	for at, step := 0, 0; at < block; at, step = at+most, step+2 {
		n := min(most, block-at)
		if step > 0 {
			s.place.Begin(t.Step(step))
		}
		if err := s.combinePiece(a, t.Step(step), own[at:at+n]); err != nil {
			return err
		}
		s.place.Keep(t.Step(step), n, t.Step(step+1))
		s.place.Begin(t.Step(step + 1))
		s.notify()
		if a.what == reduce && s.c.Rank() != a.root {
			continue
		}
		if err := s.collectPiece(a, t.Step(step), a.recv[at:at+n]); err != nil {
			return err
		}
	}
	return nil
}

// combinePiece posts a piece of the own operand and combines the own part of
// everybody's there.
func (s *boardPlace) combinePiece(a *call, t board.Turn, own []byte) error {
	if err := s.post(a, t, own); err != nil {
		return err
	}
	n, me := s.c.Size(), s.c.Rank()
	from, to := s.partOf(a, len(own), me)
	result := s.place.Room(t, len(own))[from:to]
	for i := 1; i < n; i++ {
		x, err := s.look(a, t, (me+i)%n, len(own))
		if err != nil {
			return err
		}
		if err := s.apply(a, x[from:to], result); err != nil {
			return err
		}
	}
	return nil
}

// collectPiece takes all parts once they are combined.
func (s *boardPlace) collectPiece(a *call, t board.Turn, into []byte) error {
	n, me := s.c.Size(), s.c.Rank()
	for i := range n {
		m := (me + i) % n
		if m != me {
			if err := s.await(s.place.Arrived(board.Member(m), t.Step(1))); err != nil {
				return err
			}
		}
		x, err := s.place.Look(m, t, uint8(a.what), len(into))
		if err != nil {
			return err
		}
		from, to := s.partOf(a, len(into), m)
		s.copy(into[from:to], x[from:to])
	}
	return nil
}

// partOf is which bytes of a piece a member combines.
func (s *boardPlace) partOf(a *call, piece, member int) (from, to int) {
	size, n := a.kind.Size(), s.c.Size()
	count := piece / size
	return count * member / n * size, count * (member + 1) / n * size
}
