package window

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/rma"
	"github.com/openimpi/impi/internal/engine/collective"
	"github.com/openimpi/impi/internal/engine/construct"
	"github.com/openimpi/impi/internal/engine/proc"
	"golang.org/x/sys/unix"
)

// WinAllocateShared makes a window whose memory all members map, who must be on one machine
// (MPI-4.1, 12.2.3).
func WinAllocateShared(c *proc.Comm, size int64, unit int, info *proc.Info) (*Win, error) {
	if err := construct.CheckIntra(c); err != nil {
		return nil, err
	}
	s := winSpec{flavor: WinFlavorShared, extent: rma.Extent{Size: size, Unit: int64(unit)}}
	if s.bad = checkSize(size); s.bad == nil {
		s.bad = together(c)
	}
	w, err := unservedWin(c, s, info)
	if err != nil {
		return nil, err
	}
	if err := w.memory.share(c, nil); err != nil {
		return nil, err
	}
	w.open()
	return w, nil
}

// together returns an error unless all members of c are on this proc's machine.
func together(c *proc.Comm) error {
	self := c.Process().Worlds.ProcOf(c.Self())
	for p, rank := range c.Comm.Group().All() {
		if p != c.Self() && !proc.SameMachine(self, c.Process().Worlds.ProcOf(p)) {
			return fmt.Errorf("%w: rank %d is on another machine", rma.ErrShared, rank)
		}
	}
	return nil
}

type segments struct {
	mem     []byte
	file    int     // its descriptor, until all members have it
	offsets []int64 // of each rank's part; -1 on another machine
	locks   int64   // offset of the members' locks, for atomic operations
}

// lockGrain is the size in bytes of the space for a lock, so that no two share a cache line.
const lockGrain = 64

// memfd identifies the memory of a machine to its other members; a pid of 0 means that there is
// none. apart is not 0 if the parts need not be contiguous.
type memfd struct{ pid, fd, dev, ino, noncontiguous int64 }

const memfdWords = 5

// share makes the first member of each machine create memory, which all members of it map. Of an
// allocated window, a machine with one member has none. If it fails at one member, or if bad is not
// nil there, all get an error.
func (m *memory) share(c *proc.Comm, bad error) error {
	first, several := m.neighbours()
	several = several || m.w.flavor == WinFlavorShared
	var file memfd
	own := -1
	if bad == nil && first == m.w.c.Rank() && several {
		file.noncontiguous = m.w.noncontiguous()
		own, bad = file.create()
	}
	told := make([]int64, memfdWords*m.w.c.Size())
	if err := collective.AllgatherSlices(c, []int64{file.pid, file.fd, file.dev, file.ino, file.noncontiguous}, told); err != nil {
		return errors.Join(err, shut(own))
	}
	if bad == nil && several {
		t := told[memfdWords*first:]
		bad = m.mapped(&memfd{t[0], t[1], t[2], t[3], t[4]})
	}
	ok, all := []int32{1}, []int32{0}
	if bad != nil {
		ok[0] = 0
	}
	err := errors.Join(collective.AllreduceSlices(c, ok, all, datatype.Min), shut(own))
	if m.shared != nil {
		if err == nil && bad == nil && all[0] != 0 {
			m.lent = proc.LendMemory(m.shared.file, m.shared.mem)
		}
		_ = unix.Close(m.shared.file)
	}
	switch {
	case err != nil:
	case bad != nil && !errors.Is(bad, rma.ErrShared):
		err = fmt.Errorf("%w: %w", rma.ErrShared, bad)
	case bad != nil:
		err = bad
	case all[0] == 0:
		err = fmt.Errorf("%w: another member failed", rma.ErrShared)
	}
	if err != nil {
		m.unmap()
	}
	return err
}

func (m *memory) neighbours() (first int, several bool) {
	first, n := -1, 0
	m.near = make([]bool, m.w.c.Size())
	worlds := &m.w.Process.Worlds
	self := worlds.ProcOf(m.w.c.Self())
	for p, rank := range m.w.c.Comm.Group().All() {
		if p != m.w.c.Self() && !proc.SameMachine(self, worlds.ProcOf(p)) {
			continue
		}
		m.near[rank] = true
		if n++; first < 0 || int(rank) < first {
			first = int(rank)
		}
	}
	return first, n > 1
}

func (w *Win) noncontiguous() int64 {
	if w.hints == nil {
		return 0
	}
	for _, x := range *w.hints.Pairs() {
		if x.Key == "alloc_shared_noncontig" && x.Value == "true" {
			return 1
		}
	}
	return 0
}

func (m *memory) layout(apart bool) (x segments, total int64) {
	grain := int64(1)
	if apart || m.w.flavor == WinFlavorAllocate {
		grain = int64(os.Getpagesize())
	}
	x.offsets = make([]int64, len(m.extents))
	for r, e := range m.extents {
		if x.offsets[r] = -1; m.near[r] {
			x.offsets[r] = total
			total += (e.Size + grain - 1) / grain * grain
		}
	}
	x.locks = (total + lockGrain - 1) / lockGrain * lockGrain
	return x, x.locks + lockGrain*int64(len(m.extents))
}

// create creates the memory with size 0; the members set its size.
func (f *memfd) create() (fd int, err error) {
	if fd, err = unix.MemfdCreate("impi-window", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING); err != nil {
		return -1, fmt.Errorf("memfd_create: %w", err)
	}
	f.pid, f.fd = int64(os.Getpid()), int64(fd)
	f.dev, f.ino, err = identify(fd)
	return fd, err
}

// identify returns device and inode of a descriptor's file: in another PID namespace the same name
// in /proc may stand for another file.
func identify(fd int) (dev, ino int64, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, 0, fmt.Errorf("fstat of a memfd: %w", err)
	}
	return int64(st.Dev), int64(st.Ino), nil
}

func (m *memory) mapped(f *memfd) error {
	if f.pid == 0 {
		return errors.New("the first member of the machine has no memory")
	}
	name := fmt.Sprintf("/proc/%d/fd/%d", f.pid, f.fd)
	fd, err := unix.Open(name, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening the first member's memory %s: %w", name, err)
	}
	if err = m.mapFile(f, fd, name); err != nil {
		_ = unix.Close(fd)
	}
	return err
}

// mapFile maps the memory that a descriptor stands for, and owns that unless there is an error.
func (m *memory) mapFile(f *memfd, fd int, name string) error {
	dev, ino, err := identify(fd)
	switch {
	case err != nil:
		return err
	case dev != f.dev || ino != f.ino:
		return fmt.Errorf("%s is not the first member's memory: it is in another PID namespace", name)
	}
	x, total := m.layout(f.noncontiguous != 0)
	x.file = fd
	if err := unix.Ftruncate(fd, total); err != nil {
		return fmt.Errorf("%d bytes of a memfd: %w", total, err)
	}
	x.mem, err = unix.Mmap(fd, 0, int(total), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("mmap of %d bytes: %w", total, err)
	}
	m.shared = &x
	m.mem = unsafe.Pointer(unsafe.SliceData(m.segment(m.w.c.Rank())))
	return nil
}

func (m *memory) segment(rank int) []byte {
	off, size := m.shared.offsets[rank], m.extents[rank].Size
	return m.shared.mem[off : off+size : off+size]
}

func shut(fd int) error {
	if fd < 0 {
		return nil
	}
	return unix.Close(fd)
}

func (m *memory) unmap() {
	base := m.mem
	if m.shared != nil {
		base = unsafe.Pointer(unsafe.SliceData(m.shared.mem))
	}
	switch {
	case m.lent:
		proc.FreeMem(uintptr(base))
	case m.shared != nil:
		_ = unix.Munmap(m.shared.mem) // it was mapped with this length
	default:
		return
	}
	m.shared, m.mem, m.lent = nil, nil, false
}

// SharedQuery returns the memory of a rank, or nil where this proc cannot map it, and its unit; for
// proc.ProcNull that of the first rank that has some (MPI-4.1, 12.2.3).
func (w *Win) SharedQuery(rank int) (mem []byte, unit int, err error) {
	if err := w.Check(); err != nil {
		return nil, 0, err
	}
	if rank == proc.ProcNull {
		for rank = 0; rank < w.c.Size()-1 && len(w.memory.reach(rank)) == 0; rank++ {
		}
	}
	if rank < 0 || rank >= w.c.Size() {
		return nil, 0, w.noRank(rank)
	}
	return w.memory.reach(rank), int(w.memory.extents[rank].Unit), nil
}

// reach returns the memory of a rank if this proc can load from it and store to it. In windows that
// were not made by WinAllocateShared it can do so only with its own (MPI-4.1, 12.2.3). A dynamic
// window has none.
func (m *memory) reach(rank int) []byte {
	switch {
	case m.shared != nil && m.w.flavor == WinFlavorShared:
		return m.segment(rank)
	case m.mem == nil || m.w.flavor == WinFlavorDynamic || rank != m.w.c.Rank():
		return nil
	}
	return unsafe.Slice((*byte)(m.mem), m.extents[rank].Size)
}

func (w *Win) noRank(rank int) error {
	return fmt.Errorf("%w: %d, the window has 0 to %d", comm.ErrRank, rank, w.c.Size()-1)
}
