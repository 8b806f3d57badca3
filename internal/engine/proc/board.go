package proc

import (
	"fmt"
	"slices"

	"github.com/openimpi/impi/core/board"
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/fastpath"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/poll"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/sdk/link"
)

const boardKey = machine.WakeKey - 1

// boards is a proc's part in the board of its host: see core/board.
type boards struct {
	p        *Process
	Board    *board.Board
	ranks    []wire.WorldRank // ranks of the procs that share it, ascending
	bells    []machine.Bell   // to wake each of these procs
	bell     machine.Bell     // wakes this proc
	Commit   func(at, size int) error
	Lending  *board.Lending      // how to lend blocks; nil: blocks are not lent
	CanWrite func(b []byte) bool // reports whether memory of the program can be written; nil: all can
	members  []*BoardMember      // of communicators whose goroutines wait
	asleep   bool                // these goroutines have recorded on the board that they sleep

	pending []*BoardMember // of communicators with nonblocking operations under way
	ended   uint64         // number of completed nonblocking operations
	beside  func() bool    // someGoesOn, for the driver
}

// OnBoard sets the board that the proc shares with the procs of its host, before any communication.
// back allocates a part of the board.
func (bs *boards) OnBoard(b *board.Board, bells []machine.Bell, back func(at, size int) error) error {
	bs.beside = bs.someGoesOn
	bs.ranks = bs.ProcsOfHost()
	at := slices.Index(bs.ranks, bs.p.Job.Rank)
	if len(bells) != len(bs.ranks) {
		return fmt.Errorf("%w: a board for %d procs on a host that has %d", ErrNode, len(bells), len(bs.ranks))
	}
	if err := bs.p.Driver.Set().Add(bells[at].FD(), boardKey, link.Readable); err != nil {
		return err
	}
	bs.Board, bs.bells, bs.bell, bs.Commit = b, bells, bells[at], back
	return nil
}

// TakeBoard opens the board whose descriptors came with the welcome, if there were any.
func (bs *boards) TakeBoard(fds []int) error {
	if len(fds) == 0 {
		return nil
	}
	bells := make([]machine.Bell, len(fds)-1)
	for i, fd := range fds[1:] {
		bells[i] = poll.WakerOf(fd)
	}
	b, back, err := wireup.OpenBoard(fds[0], len(bells))
	if err != nil {
		return fmt.Errorf("%w; with board = false in its host block the job does without", err)
	}
	if bs.Lending, err = wireup.NewLending(); err != nil {
		return err
	}
	return bs.OnBoard(b, bells, back)
}

// Procs returns the number of procs that share the board.
func (bs *boards) Procs() int { return len(bs.bells) }

// ProcsOfHost returns the ranks, ascending, of the procs on this proc's host, itself included.
func (bs *boards) ProcsOfHost() []wire.WorldRank {
	var ranks []wire.WorldRank
	own := bs.p.Job.Proc(bs.p.Job.Rank)
	for x := range bs.p.Job.Runs() {
		if x.Proc.Client != own.Client || x.Proc.Node != own.Node {
			continue
		}
		for i := range x.N {
			ranks = append(ranks, x.First+wire.WorldRank(i))
		}
	}
	return ranks
}

// BoardMember is this proc as a member of a communicator that has a slot of the board. The
// process's lock guards it; while it is busy one operation owns it.
type BoardMember struct {
	C       *Comm
	Member  *board.Member
	bells   []machine.Bell // by rank
	procs   []comm.Proc    // by rank
	wait    board.Wait
	Scratch [3][]byte
	Lenders []uint64 // addresses of lent memory by rank, while an operation needs them
	Ended   error    // of an operation that C has done, for Go to report
	shared  bool     // with C

	Started StartedOnBoard // nil: no nonblocking operation was started, and C starts none
	Waits   []board.Wait   // of nonblocking operations under way; each continues when its wait is over
	pending bool           // nonblocking operations are under way
}

// ShareMember gives Member the number of the last operation and shows it to C, before it is used.
func (s *BoardMember) ShareMember() {
	s.Member.Number.Store(s.C.state.Colls.number.Load())
	if x := s.C.p.FastPath; x != nil {
		x.share(s)
	}
}

// LocateMembers looks up the members on the board and reports whether all of them use it.
func (s *BoardMember) LocateMembers() bool {
	a, n := &s.C.p.Boards, s.C.Size()
	if a.Board == nil || s.C.Inter() || n < 2 || n > len(a.ranks) {
		return false
	}
	for rank := range n {
		proc, _ := s.C.Comm.Proc(rank)
		at, ok := slices.BinarySearch(a.ranks, wire.WorldRank(proc))
		if !ok {
			return false
		}
		s.bells, s.procs = append(s.bells, a.bells[at]), append(s.procs, proc)
	}
	return true
}

// LeaveBoard gives up the communicator's place on the board.
func (c *Comm) LeaveBoard() {
	c.state.Colls.Joining.Lock()
	defer c.state.Colls.Joining.Unlock()
	if s := c.state.Colls.OnBoard; s != nil {
		// Operations that were started continue after MPI_Comm_free (MPI-4.1, 7.4.3), and need the
		// place.
		_ = c.p.ProgressUntil(func() bool { return !s.pending }) // the error means that the job has ended
		if s.shared {
			c.p.FastPath.unshare(s)
		}
		c.state.Colls.number.Store(s.Member.Number.Load())
		s.Member.Leave()
		c.state.Colls.OnBoard = nil
	}
	c.state.Colls.Settled.Store(true)
}

// StartedOnBoard are the nonblocking operations of a communicator on its board.
type StartedOnBoard interface {
	BackgroundOp
	// Unfinished returns the members of the communicator that the operations wait for.
	Unfinished() uint64
	// Adopt continues an operation that C has started, the oldest first. read reports whether C has
	// read from an area since it last published this member's progress. The process is locked.
	Adopt(r *fastpath.Request, read bool) StartedByC
}

func (s *BoardMember) lost() error { return s.Lost(s.wait.Missing()) }

// Lost returns the error of one of the given members that is down, or nil.
func (s *BoardMember) Lost(members uint64) error {
	if !s.C.p.Eng.SomeUnreachable() {
		return nil
	}
	for rank, proc := range s.procs {
		if members&board.SetOf(rank) == 0 {
			continue
		}
		if err := s.C.p.Eng.Unreachable(message.Peer(proc)); err != nil {
			return fmt.Errorf("rank %d: %w", rank, err)
		}
	}
	return nil
}

// SameMachine reports whether two ranks can share memory.
func SameMachine(a, b wireup.Proc) bool {
	return a.Machine != "" && a.Machine == b.Machine || a.Client == b.Client && a.Node == b.Node
}
