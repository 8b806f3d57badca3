package job

import (
	"errors"
	"fmt"
	"syscall"
	"time"
	"unsafe"

	"github.com/openimpi/impi/core/board"
	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/internal/sim/kernel"
	"github.com/openimpi/impi/internal/wireup"
)

type hostBoard struct {
	mem   []byte
	bells []*kernel.Bell // of its procs
}

// Probability that a proc is delayed at a place on a board where the timing of others matters, and
// the maximum delay.
const (
	heldUp     = 0.2
	mostHeldUp = 500 * time.Microsecond
)

// makeBoard makes the board of a host, if it has one, as its node does. Only pages that are used
// take memory.
func (h *host) makeBoard(procs int) error {
	if !h.s.w.cfg.Boards || h.s.cfg.Foreign != nil || procs < 2 || procs > board.MaxProcs {
		return nil
	}
	header, err := board.Header(procs)
	if err != nil {
		return err
	}
	mem, err := syscall.Mmap(-1, 0, board.Size(procs), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
	if err != nil {
		return fmt.Errorf("a board of %d bytes: %w", board.Size(procs), err)
	}
	copy(mem, header)
	h.board = &hostBoard{mem: mem}
	for range procs {
		h.board.bells = append(h.board.bells, h.s.w.k.NewBell())
	}
	return nil
}

func (s *site) release() {
	for _, h := range s.hosts {
		if b := h.board; b != nil {
			h.board = nil
			_ = syscall.Munmap(b.mem)
		}
	}
}

func (p *proc) joinBoard() error {
	x := p.h.board
	if x == nil {
		return nil
	}
	b, err := board.Open(x.mem, len(x.bells))
	if err != nil {
		return err
	}
	b.Interleave(p.interleave)
	bells := make([]mpi.Bell, len(x.bells))
	for i, bell := range x.bells {
		bells[i] = bell
	}
	p.mpi.LendMemory(p.lending(len(bells)))
	return p.mpi.OnBoard(b, bells)
}

// One in this number of times a proc cannot read memory that another one lends. It can always read
// what procs try first, keySize bytes at most.
const (
	unreadable = 3
	keySize    = 16
)

// coresOfHost is how many cores a host has, so that procs of larger hosts share cores.
const coresOfHost = 3

var errNoMemory = errors.New("its memory is not there")

// lending is how the procs of a host read each other's memory, as long as the other one lives.
func (p *proc) lending(procs int) *board.Lending {
	if procs%5 == 0 {
		return nil // lending is off on these hosts
	}
	return &board.Lending{
		Key:   board.MemoryKey{Process: uint64(p.rank), Addr: uint64(uintptr(unsafe.Pointer(p)))},
		Cores: board.Cores{Count: coresOfHost},
		Fetch: func(from *board.MemoryKey, addr uint64, to []byte) error {
			p.interleave()
			if len(to) > keySize {
				if p.fetches++; (p.fetches+int(p.rank))%unreadable == 0 {
					return wireup.ErrUnreadable
				}
			}
			for _, q := range p.s.procs {
				if uint64(q.rank) == from.Process && !q.task.Ended() && !q.frozen && !q.crashed {
					copy(to, unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&addr))), len(to)))
					return nil
				}
			}
			return errNoMemory
		},
	}
}

// interleave sometimes yields to other tasks, so that operations on the board interleave.
func (p *proc) interleave() {
	p.s.w.onBoards++
	if k := p.s.w.k; p.task.Running() && k.Chance(heldUp) {
		p.between = true
		defer func() { p.between = false }()
		p.task.Sleep(k.Between(0, mostHeldUp), "is held up")
	}
}

// OnBoards returns how often procs of the job have called interleave.
func (r Result) OnBoards() int { return r.World.onBoards }

// Boxed returns the number of fast-box messages that procs of the job have sent each other.
func (r Result) Boxed() (n int) {
	for _, l := range r.World.boxed {
		n += l.Boxes()
	}
	return n
}
