package collective

import (
	"github.com/openimpi/impi/core/board"
	"github.com/openimpi/impi/internal/engine/proc"
)

// boardReduce is Reduce and Allreduce: each member has posted its operand, and those that get the
// result combine all operands in the order of the ranks, which operations that do not commute need
// (MPI-4.1, 6.9.1). So all compute the same to the last bit.
func boardReduce(s *proc.BoardMember, a *Call, t board.Step, block int) error {
	me, all := s.C.Rank(), a.What == allreduce
	if !all && me != a.Root {
		return nil
	}
	own := a.Send
	if own == nil && !all { // else it was posted
		own = keep(s, 0, a.recv)
	}
	last := s.C.Size() - 1
	for m := last; m >= 0; m-- {
		x := own
		if m != me || own == nil {
			var err error
			if x, err = look(s, a, t, m, block); err != nil {
				return err
			}
		}
		if m == last {
			boardCopy(s, a.recv, x)
		} else if err := combine(s, a, x); err != nil {
			return err
		}
	}
	return nil
}

// boardReduceScatter is ReduceScatterBlock (MPI-4.1, 6.10.1): each member has posted its operand,
// of which each combines its part as boardReduce does.
func boardReduceScatter(s *proc.BoardMember, a *Call, t board.Step, block int) error {
	n, me := s.C.Size(), s.C.Rank()
	b := Call{What: a.What, Kind: a.Kind, op: a.op, recv: a.recv[:block]}
	for m := n - 1; m >= 0; m-- {
		x, err := look(s, a, t, m, n*block)
		if err != nil {
			return err
		}
		x = x[me*block:][:block]
		if m == n-1 {
			boardCopy(s, b.recv, x)
		} else if err := combine(s, &b, x); err != nil {
			return err
		}
	}
	return nil
}

func keep(s *proc.BoardMember, i int, b []byte) []byte {
	return room(s, i, len(b))[:copy(s.Scratch[i], b)]
}

func room(s *proc.BoardMember, i, n int) []byte {
	if len(s.Scratch[i]) < n {
		s.Scratch[i] = aligned(n)
	}
	return s.Scratch[i][:n]
}

// combine combines an operand of a lower rank with the result. A user's function gets a copy, since
// other procs can write to the board meanwhile.
func combine(s *proc.BoardMember, a *Call, x []byte) error {
	if a.op.Predefined() {
		return apply(s, a, x, a.recv)
	}
	p := s.C.Process()
	p.Unlock()
	defer p.Lock()
	return a.op.Apply(keep(s, 1, x), a.recv, a.Kind, len(a.recv)/a.Kind.Size())
}

// apply calls a predefined operation, for large operands without the process's lock.
func apply(s *proc.BoardMember, a *Call, x, result []byte) error {
	count := len(result) / a.Kind.Size()
	if len(x) < bigStep {
		return a.op.Apply(x, result, a.Kind, count)
	}
	p := s.C.Process()
	p.Unlock()
	defer p.Lock()
	return a.op.Apply(x, result, a.Kind, count)
}
