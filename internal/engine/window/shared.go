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
	if err := w.memory.share(); err != nil {
		return nil, err
	}
	return w, w.open()
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

// segments is the memory that the members share.
type segments struct {
	mem     []byte
	offsets []int64 // of each rank's part
}

// memfd identifies the memory that rank 0 has created to the other members.
type memfd struct{ pid, fd, dev, ino, apart int64 }

// share makes rank 0 create the memory and all members map it. If it fails at one member, all get
// an error.
func (m *memory) share() error {
	var file memfd
	own, bad := -1, error(nil)
	if m.w.c.Rank() == 0 {
		file.apart = m.w.apart()
		own, bad = file.create(m.layout(file.apart != 0))
	}
	told := []int64{file.pid, file.fd, file.dev, file.ino, file.apart}
	if err := collective.Execute(m.w.c, &collective.Call{What: collective.OpBcast, Send: datatype.Bytes(told), Kind: datatype.Int64}); err != nil {
		return errors.Join(err, shut(own))
	}
	file = memfd{told[0], told[1], told[2], told[3], told[4]}
	if bad == nil {
		bad = m.mapped(&file)
	}
	ok, all := []int32{1}, []int32{0}
	if bad != nil {
		ok[0] = 0
	}
	err := errors.Join(collective.ReduceAll(m.w.c, ok, all, datatype.Min), shut(own))
	switch {
	case bad != nil:
		err = fmt.Errorf("%w: %w", rma.ErrShared, bad)
	case err == nil && all[0] == 0:
		err = fmt.Errorf("%w: another member failed", rma.ErrShared)
	}
	if err != nil {
		m.unmap()
	}
	return err
}

// apart returns 1 if the members' parts need not be contiguous, else 0.
func (w *Win) apart() int64 {
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

// layout returns where each member's part begins, and the size of all.
func (m *memory) layout(apart bool) (offsets []int64, total int64) {
	grain := int64(1)
	if apart {
		grain = int64(os.Getpagesize())
	}
	offsets = make([]int64, len(m.extents))
	for r, x := range m.extents {
		offsets[r] = total
		total += (x.Size + grain - 1) / grain * grain
	}
	return offsets, max(total, 1)
}

// create creates the memory.
func (f *memfd) create(_ []int64, total int64) (fd int, err error) {
	if fd, err = unix.MemfdCreate("impi-window", unix.MFD_CLOEXEC); err != nil {
		return -1, fmt.Errorf("memfd_create: %w", err)
	}
	if err := unix.Ftruncate(fd, total); err != nil {
		return fd, fmt.Errorf("%d bytes of a memfd: %w", total, err)
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

// mapped maps the memory that rank 0 has created.
func (m *memory) mapped(f *memfd) error {
	if f.pid == 0 {
		return errors.New("rank 0 has no memory")
	}
	name := fmt.Sprintf("/proc/%d/fd/%d", f.pid, f.fd)
	fd, err := unix.Open(name, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening rank 0's memory %s: %w", name, err)
	}
	defer func() { _ = unix.Close(fd) }()
	dev, ino, err := identify(fd)
	switch {
	case err != nil:
		return err
	case dev != f.dev || ino != f.ino:
		return fmt.Errorf("%s is not rank 0's memory: it is in another PID namespace", name)
	}
	offsets, total := m.layout(f.apart != 0)
	mem, err := unix.Mmap(fd, 0, int(total), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("mmap of %d bytes: %w", total, err)
	}
	m.shared = &segments{mem: mem, offsets: offsets}
	m.mem = unsafe.Pointer(unsafe.SliceData(m.segment(m.w.c.Rank())))
	return nil
}

// segment returns the memory of a rank.
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

// unmap unmaps the shared memory.
func (m *memory) unmap() {
	if m.shared == nil {
		return
	}
	_ = unix.Munmap(m.shared.mem) // it was mapped with this length
	m.shared, m.mem = nil, nil
}

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

// reach returns the memory of a rank if this proc can load from it and store to it, which in windows
// that WinAllocateShared has not made it can with its own alone (MPI-4.1, 12.2.3). A dynamic window
// has none.
func (m *memory) reach(rank int) []byte {
	switch {
	case m.shared != nil:
		return m.segment(rank)
	case m.mem == nil || m.w.flavor == WinFlavorDynamic || rank != m.w.c.Rank():
		return nil
	}
	return unsafe.Slice((*byte)(m.mem), m.extents[rank].Size)
}

func (w *Win) noRank(rank int) error {
	return fmt.Errorf("%w: %d, the window has 0 to %d", comm.ErrRank, rank, w.c.Size()-1)
}
