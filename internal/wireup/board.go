package wireup

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/board"
)

// BoardPossible reports whether this process can use a board, which takes more address
// space than a 32-bit process has to spare.
const BoardPossible = strconv.IntSize == 64

// Board is the memory that the procs of a host share for collective operations, with an
// eventfd to wake each of them. The node makes both and sends them with KindWelcome, the
// eventfds by world rank.
type Board struct {
	Memory *os.File
	Bells  []int
}

const boardSeals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

// NewBoard creates a board for procs procs. The caller closes it.
func NewBoard(procs int) (*Board, error) {
	header, err := board.Header(procs)
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("impi-board", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("board: memfd: %w", err)
	}
	b := &Board{Memory: os.NewFile(uintptr(fd), "impi-board")}
	if err := b.fill(header, procs); err != nil {
		b.Close()
		return nil, err
	}
	for range procs {
		bell, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
		if err != nil {
			b.Close()
			return nil, fmt.Errorf("board: eventfd: %w", err)
		}
		b.Bells = append(b.Bells, bell)
	}
	return b, nil
}

// fill sets the memory's size and writes its header. The procs that use the areas allocate
// them.
func (b *Board) fill(header []byte, procs int) error {
	fd := int(b.Memory.Fd())
	if err := unix.Ftruncate(fd, int64(board.Size(procs))); err != nil {
		return fmt.Errorf("board: %d bytes: %w", board.Size(procs), err)
	}
	if err := unix.Fallocate(fd, 0, 0, int64(board.ControlSize(procs))); err != nil {
		return fmt.Errorf("board: %d bytes of shared memory: %w", board.ControlSize(procs), err)
	}
	if _, err := unix.Pwrite(fd, header, 0); err != nil {
		return fmt.Errorf("board: header: %w", err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, boardSeals); err != nil {
		return fmt.Errorf("board: seal: %w", err)
	}
	return nil
}

// Descriptors returns the descriptors that go with KindWelcome: the memory, then a bell for each
// proc. They stay the board's.
func (b *Board) Descriptors() []int { return append([]int{int(b.Memory.Fd())}, b.Bells...) }

// Close closes the node's descriptors. Procs that have received theirs keep the board.
func (b *Board) Close() {
	_ = b.Memory.Close()
	CloseAll(b.Bells)
}

// OpenBoard maps the memory of a board for procs procs and checks it. back allocates a part
// of it, which must be done before writing to that part. OpenBoard takes over the
// descriptor; the memory is never unmapped.
func OpenBoard(fd, procs int) (b *board.Board, back func(at, size int) error, err error) {
	mem, err := mapBoard(fd, procs)
	if err != nil {
		return nil, nil, errors.Join(err, unix.Close(fd))
	}
	if b, err = board.Open(mem, procs); err != nil {
		return nil, nil, errors.Join(err, unix.Munmap(mem), unix.Close(fd))
	}
	return b, func(at, size int) error { return unix.Fallocate(fd, 0, int64(at), int64(size)) }, nil
}

func mapBoard(fd, procs int) ([]byte, error) {
	have, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0) // first: until it is sealed its size may change
	if err != nil || have&boardSeals != boardSeals {
		return nil, fmt.Errorf("board: %w: its file has seals %#x of %#x, so that it could be made smaller", board.ErrBoard, have, boardSeals)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("board: %w", err)
	}
	if st.Size != int64(board.Size(procs)) {
		return nil, fmt.Errorf("board: %w: a file of %d bytes, for %d procs it has %d", board.ErrBoard, st.Size, procs, board.Size(procs))
	}
	mem, err := unix.Mmap(fd, 0, int(st.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("board: %d bytes: %w", st.Size, err)
	}
	return mem, nil
}
