package mpi

import "github.com/openimpi/impi/core/board"

// reduce is Reduce and Allreduce: each member posts its operand, and those that get
// the result combine all of them, from the last rank to the first. So the order is that
// of the ranks, and all compute the same to the last bit.
func (s *boardPlace) reduce(a *call, t board.Turn, block int) error {
	me, all := s.c.Rank(), a.what == allreduceAll
	own := a.send
	if own == nil {
		own = a.recv
	}
	if all || me != a.root {
		if err := s.post(a, t, own); err != nil || !all && me != a.root {
			return err
		}
	} else if a.send == nil {
		own = s.keep(0, own)
	}
	last := s.c.Size() - 1
	for m := last; m >= 0; m-- {
		x := own
		if m != me || all {
			var err error
			if x, err = s.look(a, t, m, block); err != nil {
				return err
			}
		}
		if m == last {
			s.copy(a.recv, x)
		} else if err := s.combine(a, x); err != nil {
			return err
		}
	}
	return nil
}

// keep copies b to memory number i of the communicator's, where it stays.
func (s *boardPlace) keep(i int, b []byte) []byte {
	if len(s.scratch[i]) < len(b) {
		s.scratch[i] = aligned(len(b))
	}
	return s.scratch[i][:copy(s.scratch[i], b)]
}

// combine adds an operand of lower ranks to the result. A function of the user's
// gets nothing to look at that others can write to meanwhile.
func (s *boardPlace) combine(a *call, x []byte) error {
	if a.op.Predefined() {
		return s.apply(a, x, a.recv)
	}
	p := s.c.p
	p.unlock()
	defer p.lock()
	return a.op.Apply(s.keep(1, x), a.recv, a.kind, len(a.recv)/a.kind.Size())
}

// apply applies a predefined operation; to much without the lock.
func (s *boardPlace) apply(a *call, x, result []byte) error {
	count := len(result) / a.kind.Size()
	if len(x) < bigStep {
		return a.op.Apply(x, result, a.kind, count)
	}
	p := s.c.p
	p.unlock()
	defer p.lock()
	return a.op.Apply(x, result, a.kind, count)
}
