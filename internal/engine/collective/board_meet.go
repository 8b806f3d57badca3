package collective

import (
	"encoding/binary"

	"github.com/openimpi/impi/core/board"
	"github.com/openimpi/impi/internal/engine/proc"
)

// HasBoard reports whether c has a place on the board without an exchange of messages: it has one
// already, or it is the communicator of all procs, for which there is always one. All members get
// the same answer. The process is not locked.
func HasBoard(c *proc.Comm) bool {
	if c == c.Process().Comms.World {
		return BoardMember(c) != nil
	}
	cs := &c.State().Colls
	return cs.Settled.Load() && cs.OnBoard != nil
}

// ExchangeOnBoard sends mine to all members of c, of the same length everywhere, and calls hear
// with the bytes of each of the others, in memory that they can still write. c has a place on the
// board, and the process is locked, but may be unlocked meanwhile.
func ExchangeOnBoard(c *proc.Comm, mine []byte, receive func(rank int, theirs []byte)) error {
	return together(c.State().Colls.OnBoard, constructing, mine, receive)
}

func together(s *proc.BoardMember, what operation, mine []byte, receive func(rank int, theirs []byte)) error {
	t, err := s.Enter()
	if err != nil {
		return err
	}
	if err = exchange(s, what, t, mine, receive); err != nil {
		s.Member.Done() // others may wait for this member
	}
	s.Leave()
	if err != nil {
		return misread(err)
	}
	return nil
}

func exchange(s *proc.BoardMember, what operation, t board.Step, mine []byte, receive func(rank int, theirs []byte)) error {
	room, err := s.Room(t, len(mine))
	if err != nil {
		return err
	}
	copy(room, mine)
	s.Member.Post(t, uint8(what), len(mine))
	s.Notify()
	if err := s.Await(s.Member.Posted(s.Member.Others(), t)); err != nil {
		return err
	}
	for m := range s.C.Size() {
		if m == s.C.Rank() {
			continue
		}
		b, err := s.Member.Read(m, t, uint8(what), len(mine))
		if err != nil {
			return err
		}
		receive(m, b)
	}
	return nil
}

// MaxOnBoard is AllreduceSlices for the largest of one number of each member, for a caller that has
// locked the process. done is false, and nothing has begun, if c does not use the board for that;
// all members get the same answer.
func MaxOnBoard(c *proc.Comm, mine int32) (worst int32, done bool, err error) {
	cs := &c.State().Colls
	if !cs.Settled.Load() || cs.OnBoard == nil || c.Usable() != nil {
		return 0, false, nil
	}
	var b [4]byte
	binary.NativeEndian.PutUint32(b[:], uint32(mine))
	worst = mine
	err = together(cs.OnBoard, allreduce, b[:], func(_ int, theirs []byte) {
		worst = max(worst, int32(binary.NativeEndian.Uint32(theirs)))
	})
	if err != nil {
		worst = 0
	}
	return worst, true, err
}
