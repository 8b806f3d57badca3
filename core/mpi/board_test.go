package mpi

import (
	"os"
	"sync"
	"testing"
	"unsafe"

	"github.com/openimpi/impi/core/board"
	"github.com/openimpi/impi/internal/poll"
)

// boardOff has all tests of this package go without boards: IMPI_TEST_BOARD=off.
var boardOff = os.Getenv("IMPI_TEST_BOARD") == "off"

// maxTestBoard is the largest job whose procs get boards for the tests.
const maxTestBoard = 8

// blank are boards that were used before, by the number of procs.
var blank struct {
	sync.Mutex
	memory map[int][][]uint64
}

// newBoard makes a board. What was used before is used again: boards are large.
func newBoard(t *testing.T, procs int) *board.Board {
	t.Helper()
	blank.Lock()
	defer blank.Unlock()
	var words []uint64
	if free := blank.memory[procs]; len(free) > 0 {
		words = free[len(free)-1]
		blank.memory[procs] = free[:len(free)-1]
	} else {
		words = make([]uint64, board.Size(procs)/8)
	}
	mem := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), board.Size(procs))
	clear(mem[:board.Control(procs)])
	header, err := board.Header(procs)
	if err != nil {
		t.Fatal(err)
	}
	copy(mem, header)
	b, err := board.Open(mem, procs)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// putOnBoards gives the procs of each host a board.
func putOnBoards(t *testing.T, procs []*process) {
	t.Helper()
	for _, p := range procs {
		mates := p.housemates()
		if n := len(mates); n < 2 || n > maxTestBoard || mates[0] != p.job.Rank {
			continue
		}
		b, bells := newBoard(t, len(mates)), make([]*poll.Waker, len(mates))
		for i := range bells {
			w, err := poll.NewWaker()
			if err != nil {
				t.Fatal(err)
			}
			bells[i] = w
		}
		for _, r := range mates {
			if err := procs[r].onBoard(b, bells, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
}
