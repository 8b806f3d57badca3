package rdma

import (
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/support/ring"
)

// Port is the plugin's side of a control region. It passes entries on after a check; what they mean
// for the connection is its user's matter. Its methods are called from one goroutine, but Close and
// Alive from any.
type Port struct {
	region *region
	bell   *ring.Bell
	files
	in  consumer
	out producer

	sends uint64 // messages in slots that the proc has sent
	gives uint64 // slots for receiving that were filled
	frees uint64 // slots for receiving that the proc has given back
	left  bool   // the region channel has ended
	lent  []Lent // regions that were read from it
}

// NewPort makes a control region, the plugin's side of it, and the three descriptors that the proc
// makes a Link of, which the caller owns: the region's, the socket's and the region channel's.
func NewPort(s Shape) (p *Port, fds [3]int, err error) {
	file, err := Create(s)
	if err != nil {
		return nil, fds, err
	}
	r, err := open(file)
	if err != nil {
		return nil, fds, errors.Join(err, unix.Close(file))
	}
	var bells, channels [2]int
	if bells, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err == nil {
		if channels, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
			_, _ = unix.Close(bells[0]), unix.Close(bells[1])
		}
	}
	if err != nil {
		r.unmap()
		return nil, fds, errors.Join(fmt.Errorf("rdma: sockets: %w", err), unix.Close(file))
	}
	p = &Port{region: r, bell: ring.NewBell(bells[0]), files: files{channel: channels[0]}}
	p.in = consumer{b: r.blocks[0], entries: r.rings[0]}
	p.out = producer{b: r.blocks[1], entries: r.rings[1]}
	if p.files.region, err = unix.FcntlInt(uintptr(file), unix.F_DUPFD_CLOEXEC, 0); err != nil {
		p.Close()
		r.unmap()
		_, _, _ = unix.Close(file), unix.Close(bells[1]), unix.Close(channels[1])
		return nil, fds, fmt.Errorf("rdma: %w", err)
	}
	runtime.AddCleanup(p, (*region).unmap, r)
	return p, [3]int{file, bells[1], channels[1]}, nil
}

// Shape returns the shape of the region.
func (p *Port) Shape() Shape { return p.region.shape }

// Next returns a copy of the next entry that the proc has submitted. Fields for slots are checked.
func (p *Port) Next() (e Entry, ok bool, err error) {
	if e, ok, err = p.in.next(); err != nil || !ok {
		return e, ok, err
	}
	s := p.region.shape
	switch e.Kind {
	case SendSlot:
		if want := p.sends % uint64(s.Slots); uint64(e.Slot) != want || e.Length == 0 || e.Length > uint64(s.SlotSize) {
			err = fmt.Errorf("%w: it sends %d bytes in slot %d; the next is slot %d of %d bytes", ErrRules, e.Length, e.Slot, want, s.SlotSize)
		}
		p.sends++
	case Free:
		if want := p.frees % uint64(s.Slots); uint64(e.Slot) != want || p.frees == p.gives {
			err = fmt.Errorf("%w: it frees slot %d for receiving; the next is slot %d, and %d are in use", ErrRules, e.Slot, want, p.gives-p.frees)
		}
		p.frees++
	case SendLoan, Read:
		if e.Length == 0 || e.Length > MaxLength || e.Offset > maxRegionSize {
			err = fmt.Errorf("%w: %d bytes at offset %d of region %d", ErrRules, e.Length, e.Offset, e.Region)
		}
	case Done, End, Forget:
	default:
		err = fmt.Errorf("%w: a submission of kind %d, which there is not", ErrRules, e.Kind)
	}
	return e, err == nil, err
}

// SendSlot returns the memory of a message in a slot for sending, which Next has returned.
func (p *Port) SendSlot(e *Entry) []byte { return p.region.slot(0, int(e.Slot))[:e.Length] }

// ReceiveSlot returns the memory of the next slot for receiving, or nil if the proc has all.
func (p *Port) ReceiveSlot() []byte {
	if p.gives-p.frees == uint64(p.region.shape.Slots) {
		return nil
	}
	return p.region.slot(1, int(p.gives%uint64(p.region.shape.Slots)))
}

// Arrive tells the proc that a message of n bytes is in the next slot for receiving.
func (p *Port) Arrive(n int) error {
	slot := uint32(p.gives % uint64(p.region.shape.Slots))
	p.gives++
	return p.Complete(Entry{Kind: Arrived, Slot: slot, Length: uint64(n)})
}

// TakeFile returns the descriptor of the region, which the caller then owns, and its size. It is for
// registering the region.
func (p *Port) TakeFile() (fd int, size int64) {
	return p.takeRegion(), int64(len(p.region.mem))
}

// StageAt returns where in the file a read into slots for reading goes to. ok is false if that is
// not all in one slot.
func (p *Port) StageAt(e *Entry) (at uint64, ok bool) {
	s := p.region.shape
	if e.Offset >= uint64(s.area()) || e.Offset%uint64(s.SlotSize)+e.Length > uint64(s.SlotSize) {
		return 0, false
	}
	return uint64(s.bounceAt()+2*s.area()) + e.Offset, true
}

// Complete tells the proc of something and wakes it, if it sleeps.
func (p *Port) Complete(e Entry) error {
	if err := p.out.put(e); err != nil {
		return fmt.Errorf("%w: completions: %w", ErrRules, err)
	}
	if s := &p.out.b.readerSleeps; s.Load() != 0 && s.CompareAndSwap(1, 0) {
		p.bell.Ring()
	}
	if e.Kind != SlotSent && e.Kind != LoanSent {
		return nil
	}
	if s := &p.in.b.writerSleeps; s.Load() != 0 && s.CompareAndSwap(1, 0) {
		p.bell.Drain() // makes the proc's socket writable
	}
	return nil
}

// NextRegion returns the next region that the proc has lent.
func (p *Port) NextRegion() (l Lent, ok bool, err error) {
	if len(p.lent) == 0 {
		err = p.Look()
	}
	if len(p.lent) == 0 {
		return l, false, err
	}
	l = p.lent[0]
	p.lent = append(p.lent[:0], p.lent[1:]...)
	return l, true, nil
}

// Left reports whether the proc has closed the link or died, and everything that it has submitted
// was returned by Next.
func (p *Port) Left() bool { return p.left && !p.in.waits() }

// Handle returns the descriptor to wait at.
func (p *Port) Handle() int { return p.handle() }

// Arm announces that the caller is about to sleep on Handle. If it returns true there is something
// to do.
func (p *Port) Arm() (bool, error) {
	before := p.left
	if err := p.Look(); err != nil || p.left != before {
		return true, err
	}
	p.in.b.readerSleeps.Swap(1)
	if p.in.waits() {
		p.in.b.readerSleeps.Store(0)
		return true, nil
	}
	return false, nil
}

// Look reads the region channel, also to find out whether the proc has gone.
func (p *Port) Look() (err error) {
	var ended bool
	p.lent, ended, err = p.receive(p.lent)
	p.left = p.left || ended
	if err == nil && len(p.lent) > MaxLent {
		err = fmt.Errorf("%w: it lends %d regions that it does not use", ErrRules, len(p.lent))
	}
	return err
}

// Alive reports whether the proc has the link.
func (p *Port) Alive() bool { return p.bell.Alive() && p.in.b.ended.Load() == 0 }

// Forsake closes the descriptors of regions that NextRegion has not returned.
func (p *Port) Forsake() {
	for _, l := range p.lent {
		_ = unix.Close(l.FD)
	}
	p.lent = nil
}

// Deaf tells the proc that nothing is sent any more that it submits.
func (p *Port) Deaf() {
	p.in.b.gone.Swap(1)
	p.bell.Ring()
}

// Close closes this side. The proc's link has ended in order if it was told of the peer's end.
func (p *Port) Close() {
	p.in.b.gone.Swap(1)
	p.bell.Close()
	p.files.close()
}
