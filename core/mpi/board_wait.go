package mpi

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/openimpi/impi/core/board"
	"github.com/openimpi/impi/internal/drive"
	"github.com/openimpi/impi/internal/poll"
)

const (
	// glances is how many times a waiter looks at the board before it sees to the
	// links, and offers its core before each if there are others who want it.
	glances = 8
	// seldom is how many operations on the board go by, at most, before links are
	// seen to.
	seldom = 32
)

// await waits for what the others do on the board. The process is locked, but may
// be unlocked in between.
func (s *boardPlace) await(w board.Wait) error {
	if w.Over() {
		return nil
	}
	s.wait = w
	s.notify()
	p := s.c.p
	p.boards.places = append(p.boards.places, s)
	err := s.linger()
	if i := slices.Index(p.boards.places, s); i >= 0 {
		p.boards.places = slices.Delete(p.boards.places, i, i+1)
	}
	if p.boards.asleep { // whoever drives sleeps for the others, too
		s.place.Awake()
	}
	return err
}

func (s *boardPlace) linger() error {
	p := s.c.p
	for !s.wait.Over() {
		if p.failure != nil {
			return p.failure
		}
		if err := s.lost(); err != nil {
			return err
		}
		p.turnAtBoard(s)
	}
	return nil
}

// notify wakes those that sleep and may wait for what was written last.
func (s *boardPlace) notify() {
	for m := s.place.Sleepers(); m != 0; m &= m - 1 {
		s.bells[bits.TrailingZeros64(m)].Wake()
	}
}

// turnAboard is turn for one that waits for something on the board.
func (p *process) turnAtBoard(s *boardPlace) {
	if p.driving {
		if p.asleep { // the driver does not look at s yet
			p.links.Wake()
		}
		p.watch()
		return
	}
	p.driving = true
	p.driveAtBoard(s)
	if len(p.background) > 0 {
		p.carryOn()
	}
	p.tell()
	if p.links.Wanted.Load() != 0 {
		p.giveWay()
	}
	p.driving = false
}

// driveAboard looks at the board, and now and then at the links, and sleeps in the
// end. After each switch of procs the caches are cold: so it is little that it
// looks at most times.
func (p *process) driveAtBoard(s *boardPlace) {
	if p.deferred {
		p.flushAll()
	}
	p.spin.Begin()
	for i := 0; !p.glance(s); i++ {
		if i%glances == glances-1 && p.step() || p.links.Wanted.Load() != 0 {
			return
		}
		if i >= patience && p.lent > 0 && p.keepLent(false) {
			return
		}
		if p.spin.Over(i) {
			if !p.step() { // what lies in memory keeps park from sleeping, and is not read there
				p.park()
			}
			return
		}
	}
}

// glance looks at the board: once where others want the core, else for a while.
func (p *process) glance(s *boardPlace) bool {
	if p.spin.Shared() {
		return s.wait.Over()
	}
	for range drive.Looks {
		if s.wait.Over() {
			return true
		}
		poll.Pause()
	}
	return false
}

// lookAboard tells goroutines that sleep on turns that what they wait for on the board is there.
func (p *process) lookAtBoards() (progress bool) {
	for _, s := range p.boards.places {
		if s.wait.Over() {
			p.rouse()
			return true
		}
	}
	return false
}

// sleepAboard says on the board that those who wait sleep, and tells whether they
// may.
func (p *process) sleepAtBoards() bool {
	p.boards.asleep = true
	for _, s := range p.boards.places {
		s.place.Sleep()
		if s.wait.Over() {
			return false
		}
	}
	return true
}

// wakeAboard ends that.
func (p *process) wakeFromBoards() {
	p.boards.asleep = false
	for _, s := range p.boards.places {
		s.place.Awake()
	}
}

// rung takes the bell's event.
func (p *process) rung() {
	p.boards.bell.Clear()
	p.lookAtBoards()
}

// enter waits until the communicator's last operation is over, if it is not, and
// begins another.
func (s *boardPlace) enter() (board.Turn, error) {
	p := s.c.p
	if s.ops++; s.ops%seldom == 0 {
		p.test()
	}
	for s.busy && p.failure == nil {
		p.turn()
	}
	if p.failure != nil {
		return 0, p.failure
	}
	s.busy = true
	t := board.NewTurn(s.c.colls.number.Add(1) - 1)
	s.place.Begin(t)
	return t, nil
}

// leave ends an operation.
func (s *boardPlace) leave() {
	s.place.End()
	s.notify()
	s.busy = false
	if s.c.p.waiters > 0 {
		s.c.p.rouse()
	}
}

// room waits for the memory to post n bytes.
func (s *boardPlace) room(t board.Turn, n int) ([]byte, error) {
	if at, size := s.place.Backing(n); size > 0 && s.c.p.boards.back != nil {
		if err := s.c.p.boards.back(at, size); err != nil {
			return nil, fmt.Errorf("%d bytes of shared memory: %w", size, err)
		}
	}
	if err := s.await(s.place.Vacant(t, n)); err != nil {
		return nil, err
	}
	return s.place.Room(t, n), nil
}
