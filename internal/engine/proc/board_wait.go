package proc

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/openimpi/impi/core/board"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/internal/drive"
	"github.com/openimpi/impi/internal/fastpath"
	"github.com/openimpi/impi/internal/poll"
	"github.com/openimpi/impi/internal/wireup"
)

const (
	// glances is how many times a waiter looks at the board before it looks at the links, and
	// before each look it yields its core if other procs want it.
	glances = 8
)

// naps are after which times a member that sleeps looks again, as others may not have seen that it
// does. Each is much longer than a store takes until other cores see it; a signal may end one of
// them early.
var naps = [...]time.Duration{time.Millisecond, 20 * time.Millisecond}

// Await waits until w is over. The process is locked, but may be unlocked meanwhile.
func (s *BoardMember) Await(w board.Wait) error {
	if w.Done() {
		return nil
	}
	s.Notify()
	p := s.C.p
	if !p.Account.on() && !p.Endpoints.deferred && s.Poll(&w) { // the quickest way
		return nil
	}
	s.wait = w
	p.Boards.members = append(p.Boards.members, s)
	err := s.linger()
	if i := slices.Index(p.Boards.members, s); i >= 0 {
		p.Boards.members = slices.Delete(p.Boards.members, i, i+1)
	}
	if p.Boards.asleep && !s.pending { // the driver sleeps for the other waiters, too
		s.Member.EndSleep()
	}
	return err
}

func (s *BoardMember) linger() error {
	p := s.C.p
	for !s.wait.Done() {
		if p.Failure != nil {
			return p.Failure
		}
		if err := s.lost(); err != nil {
			return err
		}
		if !p.Account.on() {
			p.Boards.awaitAtBoard(s)
			continue
		}
		begun, left := time.Now(), s.wait.Missing()
		p.Boards.awaitAtBoard(s)
		if after := s.wait.Missing(); after != 0 {
			left = after // they have kept the others waiting
		}
		p.Account.waited(ForCollective, message.Peer(s.procs[bits.TrailingZeros64(left)]), begun)
	}
	return nil
}

// Notify wakes the members that sleep, since they may wait for the last write.
func (s *BoardMember) Notify() { s.Wake(s.Member.Sleepers()) }

// Wake wakes members, a bit for each, whether they sleep or not.
func (s *BoardMember) Wake(members uint64) {
	for m := members; m != 0; m &= m - 1 {
		s.bells[bits.TrailingZeros64(m)].Wake()
	}
}

// awaitAtBoard is Process.AwaitProgress for a goroutine that waits for something on the board.
func (bs *boards) awaitAtBoard(s *BoardMember) {
	if bs.p.Driving {
		if bs.p.Asleep { // a driver that sleeps does not look at s
			bs.p.Driver.Wake()
		}
		bs.p.watch()
		return
	}
	bs.p.Driving = true
	bs.driveAtBoard(s)
	bs.p.Background.carryOn()
	bs.p.tell()
	if bs.p.Driver.Wanted.Load() != 0 {
		bs.p.giveWay()
	}
	bs.p.Driving = false
}

// driveAtBoard polls the board, sometimes the links too, and finally sleeps. It polls little
// each time because caches are cold after a switch between procs.
func (bs *boards) driveAtBoard(s *BoardMember) {
	if bs.p.Endpoints.deferred {
		bs.p.Endpoints.FlushAll()
	}
	bs.p.spin.Begin()
	for i := 0; !bs.glance(s); i++ {
		if i%glances == glances-1 && bs.p.step() || bs.p.Driver.Wanted.Load() != 0 {
			return
		}
		if i >= patience && bs.p.Endpoints.lent > 0 && bs.p.Endpoints.keepLent(false) {
			return
		}
		if bs.p.spin.Over(i) {
			if !bs.p.step() { // unread data in shared memory would keep park from sleeping
				bs.p.park()
			}
			return
		}
	}
}

// glance polls the board: once if other procs want the core, else for a while, and reports whether
// a wait is over.
func (bs *boards) glance(s *BoardMember) bool {
	if bs.p.spin.Shared() {
		return s.wait.Done()
	}
	for range drive.MemoryPolls {
		if s.wait.Done() {
			return true
		}
		poll.Pause()
	}
	return false
}

// Poll polls a wait, though only once where other procs need the core, and reports whether it is
// over. It returns false if a goroutine waits for the lock.
func (s *BoardMember) Poll(w *board.Wait) bool {
	p := s.C.p
	for i := p.spin.PollsBeforeYield(); ; i-- {
		if w.Done() {
			return true
		}
		if i <= 0 || p.Driver.Wanted.Load() != 0 {
			return false
		}
		poll.Pause()
	}
}

// lookAtBoards wakes goroutines that sleep on turns if one of their waits at the board is over.
func (bs *boards) lookAtBoards() (progress bool) {
	for _, s := range bs.members {
		if s.wait.Done() {
			bs.p.WakeAll()
			return true
		}
	}
	return false
}

// sleepAtBoards announces on the board that the waiters sleep. It returns false if a wait is over,
// so that they must not sleep.
func (bs *boards) sleepAtBoards() bool {
	bs.asleep = true
	for _, s := range bs.members {
		s.Member.Sleep()
		if s.wait.Done() {
			return false
		}
	}
	for _, s := range bs.pending {
		s.Member.Sleep()
		if s.goesOn() {
			return false
		}
	}
	return true
}

// missed reports whether what the waiters sleep for may have been written by somebody who has not
// seen that they sleep: by PublishRelaxed.
func (bs *boards) missed() bool {
	again := func(s *BoardMember) bool { return s.Member.Rechecks != 0 }
	return slices.ContainsFunc(bs.members, again) || slices.ContainsFunc(bs.pending, again)
}

func (bs *boards) over() bool {
	return slices.ContainsFunc(bs.members, func(s *BoardMember) bool { return s.wait.Done() }) || bs.someGoesOn()
}

// doze sleeps. Where others may not have seen that this proc sleeps, it looks at the boards again
// in between.
func (bs *boards) doze() ([]poll.Event, error) {
	if bs.missed() {
		for _, nap := range naps {
			if events, err := bs.p.doze(nap); err != nil || len(events) > 0 || bs.over() {
				return events, err
			}
		}
	}
	return bs.p.doze(-1)
}

func (s *BoardMember) goesOn() bool {
	for i := range s.Waits {
		if s.Waits[i].Done() {
			return true
		}
	}
	return false
}

// someGoesOn reports whether a nonblocking operation on a board can go on, which the background
// operations then do.
func (bs *boards) someGoesOn() bool {
	for _, s := range bs.pending {
		if s.goesOn() {
			return true
		}
	}
	return false
}

// Pending sets whether nonblocking operations of s are under way, which StartedOnBoard continues.
func (s *BoardMember) Pending(on bool) {
	p := s.C.p
	if s.pending == on {
		return
	}
	s.pending = on
	if on {
		p.Boards.pending = append(p.Boards.pending, s)
		p.Driver.OtherEvent = p.Boards.beside
		p.Background.List = append(p.Background.List, s.Started)
		if p.Asleep { // a driver that sleeps does not look at s
			p.Driver.Wake()
		}
		return
	}
	i := slices.Index(p.Boards.pending, s)
	if p.Boards.pending = slices.Delete(p.Boards.pending, i, i+1); len(p.Boards.pending) == 0 {
		p.Driver.OtherEvent = nil
	}
	p.Background.drop(s.Started)
	if p.Boards.asleep && !slices.Contains(p.Boards.members, s) {
		s.Member.EndSleep()
	}
}

// CountEnded counts n nonblocking operations on the board that are over, and wakes goroutines that
// may wait for them.
func (s *BoardMember) CountEnded(n int) {
	p := s.C.p
	p.Boards.ended += uint64(n)
	if p.Waiters > 0 {
		p.WakeAll()
	}
}

// wakeFromBoards undoes sleepAtBoards.
func (bs *boards) wakeFromBoards() {
	bs.asleep = false
	for _, s := range bs.members {
		s.Member.EndSleep()
	}
	for _, s := range bs.pending {
		s.Member.EndSleep()
	}
}

// rung handles an event of the bell: another proc of the host has written to the board.
func (bs *boards) rung() {
	bs.bell.Clear()
	bs.lookAtBoards()
}

// Prepare fetches the cache lines that the next operation writes first. It is called early in a
// call that will begin an operation.
func (s *BoardMember) Prepare() { s.Member.PrefetchOwn(board.FirstStep(s.Member.Number.Load())) }

// Enter waits for the communicator's previous operations to end, and begins another.
func (s *BoardMember) Enter() (board.Step, error) {
	p := s.C.p
	s.Count()
	for (s.Member.Busy != 0 || s.pending) && p.Failure == nil {
		p.AwaitProgress()
	}
	if p.Failure != nil {
		return 0, p.Failure
	}
	s.Member.Busy = 1
	t := board.FirstStep(s.C.state.Colls.Next())
	s.Member.Begin(t)
	return t, nil
}

// Count counts an operation that begins. Now and then it also looks at the links, and at once if the
// node has sent something: a proc that is always the last at the board does not look while it waits.
func (s *BoardMember) Count() {
	if s.Member.Ops++; s.Member.Ops%fastpath.BoardOpsPerLook == 0 || s.C.p.Node.news.Load() {
		s.C.p.Test()
	}
}

// Leave ends an operation.
func (s *BoardMember) Leave() {
	s.Member.End()
	s.Notify()
	s.Member.Busy = 0
	if s.C.p.Waiters > 0 { // waiters continue operations that were started meanwhile
		s.C.p.WakeAll()
	}
}

// Room waits until memory for n bytes is free, and returns it.
func (s *BoardMember) Room(t board.Step, n int) ([]byte, error) {
	return s.room(t, n, s.Member.Vacant(t, n))
}

// RoomFor is Room for a post that only readers read, members that have also read all posts since
// the turn since.
func (s *BoardMember) RoomFor(t board.Step, n int, since board.Step, readers uint64) ([]byte, error) {
	return s.room(t, n, s.Member.VacantFor(t, n, since, readers))
}

func (s *BoardMember) room(t board.Step, n int, vacant board.Wait) ([]byte, error) {
	if err := s.Allocate(n); err != nil {
		return nil, err
	}
	if err := s.Await(vacant); err != nil {
		return nil, err
	}
	return s.Member.Room(t, n), nil
}

// Allocate makes sure that the memory for n bytes, of which Room returns a part, is allocated.
func (s *BoardMember) Allocate(n int) error {
	if at, size := s.Member.Backing(n); size > 0 && s.C.p.Boards.Commit != nil {
		if err := s.C.p.Boards.Commit(at, size); err != nil {
			s.Member.Backed = [2]uint32{}
			return fmt.Errorf("%d bytes of shared memory: %w", size, err)
		}
	}
	return nil
}

// Fetch copies memory that a member lends; addr is from Member.LentAddr. The process is unlocked
// meanwhile. The error wraps wireup.ErrUnreadable if only that member can read the memory, so that
// it must copy it.
func (s *BoardMember) Fetch(member int, addr uint64, to []byte) error {
	p := s.C.p
	p.Unlock()
	defer p.Lock()
	err := p.Boards.Lending.Fetch(&s.Member.Keys[member], addr, to)
	if err == nil {
		return nil
	}
	if errors.Is(err, wireup.ErrUnreadable) && p.Boards.CanWrite != nil && !p.Boards.CanWrite(to) {
		return fmt.Errorf("%w: there is no memory for the %d bytes of rank %d", ErrBuffer, len(to), member)
	}
	return fmt.Errorf("rank %d: %w", member, err)
}

// Returned records that this member has read all that it needs of the operation, and waits until
// the live members of members, to which this one has lent memory, have done so as well. It returns
// the error of the first member that is down.
func (s *BoardMember) Returned(members uint64, t board.Step) (err error) {
	s.Member.End()
	s.Notify()
	for m := members; m != 0; m &= m - 1 {
		if e := s.Await(s.Member.Finished(m&-m, t)); e != nil && err == nil {
			err = e
		}
	}
	return err
}
