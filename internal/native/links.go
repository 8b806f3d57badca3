package native

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
)

type vendor interface {
	send(to int, tag int32, buf unsafe.Pointer, n int) (request, error)
	poll(buf unsafe.Pointer, room int, a *arrival) (found bool, err error)
	recv(held int32, buf unsafe.Pointer, n int) (request, error)
	test(r request) (done bool, err error)
	begin(c Comm, p *Phase) (request, error)
	// failure returns the error of a collective operation that C has begun.
	failure(result int32) error

	// beginShorts begins short messages; nil: there are none.
	beginShorts() carrier
}

// request is the number of an operation that the library has begun; none means that it was done at
// once.
type request = int32

const none request = -1

type arrival struct {
	source, tag int32
	bytes       int64
	held        int32 // none: it is in the buffer
}

// The messages of the stream, by the lowest bits of their tags. Each but a long one begins with a
// prefix.
const (
	tagChunk     = 1 + iota // bytes of the stream
	tagLong                 // bytes of the stream, without a prefix, straight from the sender's buffer to the receiver's
	tagAllowance            // only a prefix
	tagEnd                  // only a prefix: the stream has ended

	tagKinds  = 1<<3 - 1
	tagShorts = 1 << 13 // the sender takes short messages; 1<<3 and 1<<12 meant those of other forms
	tagAfter  = 4       // first bit of the number of short messages sent before it, modulo 256, of which 64 can be under way
)

const (
	// prefixSize is the prefix: how many messages the sender of this one has taken off the link
	// since it last said so.
	prefixSize = 8
	// chunkSize is the largest message with a prefix. What a chunk has is copied on both sides. It is
	// so small that libraries send it at once: receiving one that waits for its sender would block.
	chunkSize = 4032
	// longSize is how many contiguous bytes of the sender are sent as a long message.
	longSize = chunkSize + 1
	// maxLong is the largest long message. A receiver that has no place for one yet needs as much
	// memory.
	maxLong = 1 << 20
	// window is how many messages may be under way on one direction of a link without being taken:
	// the library keeps them in its own memory, of which nobody knows the bounds. Credits do not
	// count.
	window = 64
	slab   = 16
	// pollsAtATime bounds how many messages of others come before the caller goes on.
	pollsAtATime = 8
)

// Links is the links of a proc to the other procs of its site by the site's MPI. One goroutine at a
// time may use it and its links.
type Links struct {
	lib       vendor
	links     []*Link  // by rank at the site; nil: nothing has been said yet
	free      [][]byte // chunks
	pins      []*runtime.Pinner
	fresh     []*Link  // have something to receive
	phases    []*Phase // that are not over
	transfers []*Transfer
	orphans   []piece // that the library is still receiving, though they are not waited for any more
	err       error   // of the library; it is of no use any more
	shorts    carrier // nil: there are no short messages
	seen      uint64  // number of messages received at the last look

	next    []byte // where the next message goes
	arrival arrival
}

// NewLinks makes the links of a library whose Init was called.
func NewLinks(l *Library) *Links { return newLinks(l, l.Size) }

func newLinks(v vendor, size int) *Links { return &Links{lib: v, links: make([]*Link, size)} }

// Link returns the link to a rank of the site. created reports whether it is new.
func (h *Links) Link(rank int) (l *Link, created bool) {
	if l = h.links[rank]; l == nil {
		l = &Link{set: h, to: rank, room: window}
		h.links[rank] = l
		if h.err != nil {
			l.fail(h.err)
			l.markReady()
		}
		return l, true
	}
	return l, false
}

// Poll receives messages from the library, which makes progress by that. It returns the links on
// which something can be received. Recv takes links out of the slice and fills their places from
// its end, so that the caller has to go through it from the end. news reports whether phases or
// transfers are over.
func (h *Links) Poll() (ready []*Link, news bool) {
	if h.err != nil { // the links that are ready have not been told yet
		return h.fresh, false
	}
	before := len(h.phases) + len(h.transfers)
	if before > 0 {
		news = h.lookAtPhases()
		news = h.lookAtTransfers() || news
	}
	if len(h.orphans) > 0 {
		h.freeOrphans()
	}
	for range pollsAtATime {
		if !h.take() {
			break
		}
	}
	if h.shorts != nil {
		h.markShorts()
	}
	return h.fresh, news || h.err != nil && before > 0
}

func (h *Links) take() bool {
	if h.next == nil {
		b, err := h.chunk()
		if err != nil {
			h.fail(err)
			return false
		}
		h.next = b
	}
	a := &h.arrival
	found, err := h.lib.poll(unsafe.Pointer(&h.next[0]), len(h.next), a)
	if err != nil {
		h.fail(err)
		return false
	}
	if !found {
		return false
	}
	if a.source < 0 || int(a.source) >= len(h.links) {
		h.fail(fmt.Errorf("%w: a message of rank %d in a world of %d", ErrFailed, a.source, len(h.links)))
		return false
	}
	l, _ := h.Link(int(a.source))
	if err := l.arrived(a); err != nil {
		l.fail(err)
	}
	l.markReady()
	return true
}

// drop receives and discards a message, so that its sender goes on.
func (h *Links) drop(held int32, size int) error {
	b, err := mapped(size)
	if err != nil {
		return err
	}
	p := piece{size: size, buf: b, own: true, begun: true}
	if p.number, err = h.lib.recv(held, unsafe.Pointer(&b[0]), size); err == nil {
		h.orphans = append(h.orphans, p)
	}
	return err
}

// freeOrphans frees the memory of messages that are not waited for any more, once they have
// arrived.
func (h *Links) freeOrphans() {
	kept := h.orphans[:0]
	for _, p := range h.orphans {
		done, _ := h.lib.test(p.number)
		switch {
		case !done:
			kept = append(kept, p)
		case p.own:
			_ = unix.Munmap(p.buf) // cannot fail for mapped memory
		default:
			h.unpin(p.pin)
		}
	}
	clear(h.orphans[len(kept):])
	h.orphans = kept
}

// fail ends all links and phases. It keeps what is pinned, as the library may still write to it.
func (h *Links) fail(err error) {
	h.err = err
	for _, p := range h.phases {
		p.done, p.err = true, err
	}
	for _, t := range h.transfers {
		t.done, t.err = true, err
	}
	h.transfers = nil
	for _, l := range h.links {
		if l != nil {
			l.fail(err)
			l.markReady()
		}
	}
}

// chunk returns memory for a chunk. It is outside of Go's heap, as the library keeps its address.
func (h *Links) chunk() ([]byte, error) {
	if n := len(h.free); n > 0 {
		b := h.free[n-1]
		h.free = h.free[:n-1]
		return b, nil
	}
	b, err := mapped(slab * chunkSize)
	if err != nil {
		return nil, err
	}
	for range slab {
		h.free = append(h.free, b[:chunkSize:chunkSize])
		b = b[chunkSize:]
	}
	return h.chunk()
}

// mapped returns memory outside of Go's heap.
func mapped(n int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("%d bytes for messages of the site's MPI: %w", n, err)
	}
	return b, nil
}

// pinner returns a Pinner that pins nothing yet.
func (h *Links) pinner() *runtime.Pinner {
	n := len(h.pins)
	if n == 0 {
		return new(runtime.Pinner)
	}
	p := h.pins[n-1]
	h.pins = h.pins[:n-1]
	return p
}

func (h *Links) unpin(p *runtime.Pinner) {
	p.Unpin()
	h.pins = append(h.pins, p)
}

// Idle reports whether nothing of this proc's own is under way in the library any more.
func (h *Links) Idle() bool {
	h.Poll()
	settled := true
	for _, l := range h.links {
		if l != nil && h.err == nil {
			l.completeSends()
			settled = settled && len(l.flights) == 0
		}
	}
	return h.err != nil || settled && len(h.transfers) == 0 && (h.shorts == nil || !h.shorts.sending())
}

var _ link.Lender = (*Link)(nil)
