package collective

import (
	"cmp"
	"errors"
	"math/bits"

	"github.com/openimpi/impi/core/board"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/sdk/support/ntcopy"
)

// Lent memory can be such that the kernel cannot read it for another process, such as a mapping of
// a device, and the kernel may refuse to read any. A member that could not read asks the lender,
// which then posts all of it in pieces, in steps of the same operation.

// mostLent is how many bytes can be lent: an operation has steps for twice as many.
const mostLent = board.MaxSteps / 4 * board.MaxPost

// taker takes a piece of what member m lends, which begins at an offset.
type taker func(m, at int, piece []byte) error

// pieces are what members post for those that could not read it.
type pieces struct {
	op     operation
	size   int        // of a piece; 0: the maximum
	begun  board.Step // the operation
	behind board.Step // the step after which the pieces are posted
	lent   []byte     // bytes that this member posts
	askers uint64     // members that ask for them
	asked  uint64     // members that post something for this one
	length func(m int) int
	take   taker // called for each member of asked, from the last rank to the first, and with nil at this member's turn
}

// returned waits until members have read what this one has lent in t, and posts it for those that
// could not.
func returned(s *proc.BoardMember, op operation, t board.Step, lent []byte, members uint64) error {
	err := s.Returned(members, t)
	return cmp.Or(err, (&pieces{op: op, begun: t, behind: t, lent: lent, askers: s.Member.Askers(t, members)}).exchange(s))
}

func same(n int) func(int) int { return func(int) int { return n } }

// exchange posts and takes all pieces. Those for whom nothing is posted, and who post nothing, need
// not call it.
func (x *pieces) exchange(s *proc.BoardMember) error {
	if x.askers|x.asked == 0 {
		return nil
	}
	longest, most := 0, board.MaxPost
	if x.size > 0 {
		most = x.size
	}
	if x.askers != 0 {
		longest = len(x.lent)
	}
	for left := x.asked; left != 0; left &= left - 1 {
		longest = max(longest, x.length(bits.TrailingZeros64(left)))
	}
	step := x.behind
	for at := 0; at < longest; at += most {
		step = step.Step(2)
		s.Member.Begin(step)
		s.Notify()
		if err := x.post(s, step, at, most); err != nil {
			return err
		}
		if err := x.collect(s, step, at, most); err != nil {
			return err
		}
	}
	s.Member.Done() // even if it has read little: the others wait
	return s.Returned(x.askers, step)
}

func (x *pieces) post(s *proc.BoardMember, step board.Step, at, most int) error {
	n := min(most, len(x.lent)-at)
	if x.askers == 0 || n <= 0 {
		return nil
	}
	to, err := s.RoomFor(step, n, x.begun, x.askers)
	if err != nil {
		return err
	}
	boardMove(s, to, x.lent[at:at+n], ntcopy.Copy)
	s.Member.Post(step, uint8(x.op), n)
	s.Notify()
	return nil
}

func (x *pieces) collect(s *proc.BoardMember, step board.Step, at, most int) error {
	for m := s.C.Size() - 1; m >= 0 && x.asked != 0; m-- {
		var piece []byte
		if m != s.C.Rank() {
			n := min(most, x.length(m)-at)
			if x.asked&board.SetOf(m) == 0 || n <= 0 {
				continue
			}
			var err error
			if piece, err = look(s, &Call{What: x.op}, step, m, n); err != nil {
				return err
			}
		}
		if err := x.take(m, at, piece); err != nil {
			return err
		}
	}
	return nil
}

// copyPart copies the bytes of piece, which begins at offset from, that belong into to, which
// begins at offset at.
func copyPart(s *proc.BoardMember, to []byte, at int, piece []byte, from int) {
	low, high := max(at, from), min(at+len(to), from+len(piece))
	if low < high {
		boardCopy(s, to[low-at:high-at], piece[low-from:])
	}
}

// reduceAsked goes on with a Reduce from offset from on when memory could not be read, for which
// cause is the error.
func reduceAsked(s *proc.BoardMember, a *Call, t board.Step, from int, cause error) error {
	if !errors.Is(cause, wireup.ErrUnreadable) {
		return cause
	}
	s.Member.Ask(t, s.Member.Others())
	giveBack(s)
	most := board.MaxPost / a.Kind.Size() * a.Kind.Size()
	return (&pieces{
		op: a.What, size: most, begun: t, behind: t, asked: s.Member.Others(), length: same(len(a.recv)),
		take: adder(s, a, 0, len(a.recv), most, from),
	}).exchange(s)
}

// adder returns a taker that combines the n bytes of all operands that are posted from offset from
// on, in pieces of most bytes. It skips the pieces before done.
func adder(s *proc.BoardMember, a *Call, from, n, most, done int) taker {
	me, last := s.C.Rank(), s.C.Size()-1
	var own []byte
	return func(m, at int, x []byte) error {
		if at < done {
			return nil
		}
		k := min(most, n-at)
		if m == last {
			own = ownPiece(s, a, from+at, k)
		}
		if m == me {
			x = own
		}
		return addPiece(s, a, m, x, a.recv[from+at:][:k])
	}
}

// AwaitFastPathReads waits until members have read the bytes that C has lent them in an operation.
// It returns false if a member can no longer do so. Go then reports that as the end of the
// operation instead of repeating it: the others would not repeat it.
func AwaitFastPathReads(slot int, members, step uint64, op uint8, lent []byte) bool {
	p, err := proc.Current()
	if err != nil {
		return false
	}
	p.Lock()
	defer p.Unlock()
	s := p.FastPath.BoardMemberAt(slot)
	if s == nil {
		return false
	}
	s.Ended = returned(s, operation(op), board.Step(step), lent, members)
	return s.Ended == nil
}
