package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
	"unsafe"

	"github.com/openimpi/impi/plugins/sdk/link"
	sdkfabric "github.com/openimpi/impi/plugins/sdk/transports/fabric"
)

const (
	maxMessage = 64<<10 + 512 // bytes; package fabric's slots have 64 KiB
	sizeBytes  = 4            // before each message in the stream, little endian: its length

	maxReads = 32      // of a link under way
	maxParts = 4       // of a link that the provider has
	partSize = 1 << 19 // bytes of one of them, if the provider takes as many

	stuckTime = 30 * time.Second // after which a read of which nothing more comes ends its link, at the earliest
)

var errStuckRead = errors.New("a read of the peer's memory has not ended for the time of silence")

var _ sdkfabric.Conn = (*messages)(nil)

// messages is a link by data plane "rdma": messages in the stream's order, none of which shares a
// message of the provider with another, and reads of the peer's memory. The node's mutex guards it.
type messages struct {
	l     *stream
	limit int // bytes of a message that the peer's window has room for

	into [][]byte // during Recv: where the next message goes
	took int      // its length; 0: it has not come
	need int      // bytes in the stream of the message for which Send had no room
	over bool     // nothing is read any more
	head [sizeBytes]byte

	reads []*reading // oldest first
	parts int        // that the provider has
	done  []sdkfabric.Completion
	since time.Time // when a part has ended, or the first one was begun
	views map[*region]*view
}

// reading is one Read.
type reading struct {
	m      *messages
	op     uint64
	view   *view
	at     int // of the rest in view
	rest   int // bytes that the provider was not asked for
	from   remote
	parts  int   // that the provider has
	err    error // of a part
	orphan bool  // the link has ended
}

// newMessages makes a link one of messages. window is the peer's.
func newMessages(l *stream, window uint64) *messages {
	// The peer grants more only when a quarter of its window was read.
	return &messages{l: l, limit: min(maxMessage, int(window/4*3)-sizeBytes), views: map[*region]*view{}}
}

// Limits returns how the link can be used.
func (m *messages) Limits() sdkfabric.Limits { return sdkfabric.Limits{Message: m.limit, Rails: 1} }

// room reports whether so many bytes can be sent now.
func (m *messages) room(size int) bool {
	return m.l.hasRoom() && m.l.allowed-m.l.sendPos >= uint64(size)
}

// Send gives a message to the provider, if the peer has room for it.
func (m *messages) Send(batch [][]byte) (bool, error) {
	l := m.l
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	size := sizeBytes
	for _, b := range batch {
		size += len(b)
	}
	switch {
	case l.closed:
		return false, link.ErrClosed
	case l.state == broken:
		return false, m.lost()
	case l.left: // Recv has the end
		return false, nil
	case size-sizeBytes > m.limit:
		return false, fmt.Errorf("a message of %d bytes, at most %d", size-sizeBytes, m.limit) //nolint:err113 // a fault of the caller
	}
	l.awake()
	if !m.room(size) {
		l.n.progress(nil)
	}
	if !m.room(size) {
		m.need = size
		return false, nil
	}
	m.need = 0
	if m.put(batch, size); l.state == broken {
		return false, m.lost()
	}
	return true, nil
}

// put sends a message in as many of the provider's as it needs.
func (m *messages) put(batch [][]byte, size int) {
	l := m.l
	binary.LittleEndian.PutUint32(m.head[:], uint32(size-sizeBytes))
	for from := (cursor{m.head[:], batch}); size > 0; {
		s := l.n.slot(1)
		if s == nil {
			l.breakOff(errMemory)
			break
		}
		n := from.fill(s.data[headSize:][:l.n.set.fragment])
		l.queue(s, n)
		size -= n
	}
	l.push()
}

// cursor is a place in a batch.
type cursor struct {
	now  []byte
	rest [][]byte
}

// fill copies as many bytes as there are, or as there is room for.
func (c *cursor) fill(b []byte) (n int) {
	for n < len(b) {
		k := copy(b[n:], c.now)
		n += k
		if c.now = c.now[k:]; len(c.now) > 0 || len(c.rest) == 0 {
			break
		}
		c.now, c.rest = c.rest[0], c.rest[1:]
	}
	return n
}

// waiting returns the length of the message whose first bytes are unread, and whether all of it has
// come.
func (m *messages) waiting() (size int, whole bool) {
	l := m.l
	if l.unread < sizeBytes {
		return 0, false
	}
	var b [sizeBytes]byte
	for i := range b {
		b[i] = l.ring[(l.start+i)&(len(l.ring)-1)]
	}
	size = int(binary.LittleEndian.Uint32(b[:]))
	return size, l.unread-sizeBytes >= size
}

// take gives a message that has come in one piece to the Recv that waits for it.
func (m *messages) take(b []byte) bool {
	if m.into == nil || m.took > 0 || m.l.unread > 0 || len(b) <= sizeBytes {
		return false
	}
	size := int(binary.LittleEndian.Uint32(b))
	if b = b[sizeBytes:]; size != len(b) || size > roomOf(m.into) {
		return false
	}
	for _, to := range m.into {
		b = b[copy(to, b):]
	}
	m.took = size
	return true
}

// roomOf returns how many bytes a batch has room for.
func roomOf(batch [][]byte) (n int) {
	for _, b := range batch {
		n += len(b)
	}
	return n
}

// Recv handles the provider's completions, and returns the next message.
func (m *messages) Recv(batch [][]byte) (int, error) {
	l := m.l
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	if l.closed {
		return 0, link.ErrClosed
	}
	l.awake()
	if _, whole := m.waiting(); !whole {
		m.into, m.took = batch, 0
		l.n.progress(l)
		m.into = nil
		if m.took > 0 {
			l.grant()
			return m.took, nil
		}
	}
	size, whole := m.waiting()
	switch {
	case l.unread >= sizeBytes && (size == 0 || size > roomOf(batch)):
		l.breakOff(fmt.Errorf("%w: a message of %d bytes, at most %d are expected", errRules, size, roomOf(batch)))
		l.push()
		return 0, m.lost()
	case whole:
		l.read(m.head[:])
		for left := size; left > 0; batch = batch[1:] {
			left -= l.read(batch[0][:min(left, len(batch[0]))])
		}
		return size, nil
	case l.ends && l.got == l.end && l.unread == 0:
		return 0, io.EOF
	case l.state == broken:
		return 0, m.lost()
	case l.ends && l.got == l.end:
		l.breakOff(fmt.Errorf("%w: it ends inside of a message", errRules))
		l.push()
		return 0, m.lost()
	}
	return 0, nil
}

// lost is the error of a broken link.
func (m *messages) lost() error { return fmt.Errorf("%w: %w", link.ErrBroken, m.l.err) }

// Read begins to read the peer's memory.
func (m *messages) Read(r sdkfabric.Request) (bool, error) {
	l := m.l
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	switch {
	case l.closed || m.over:
		return false, link.ErrClosed
	case l.state == broken:
		return false, m.lost()
	case len(m.reads) == maxReads:
		return false, nil
	}
	from, err := parseKey(r.Key, r.From, uint64(len(r.Into)))
	if err != nil {
		l.breakOff(err)
		l.push()
		return false, m.lost()
	}
	local := r.Local.(*region)
	v, err := m.view(local)
	if err != nil {
		return false, err
	}
	at := uintptr(unsafe.Pointer(unsafe.SliceData(r.Into))) - uintptr(unsafe.Pointer(unsafe.SliceData(local.bytes)))
	if m.parts == 0 {
		m.since = time.Now()
	}
	m.reads = append(m.reads, &reading{m: m, op: r.Op, view: v, at: int(at), rest: len(r.Into), from: from})
	m.issue()
	return true, nil
}

// issue gives the provider parts of reads, as many as a link may have there.
func (m *messages) issue() {
	n, p := m.l.n, m.l.peer
	defer m.settle()
	for _, r := range m.reads {
		for r.rest > 0 && r.err == nil && m.parts < maxParts {
			if m.l.state != opened || p.dead != nil || !p.known {
				return // the link ends
			}
			s := n.slot(0)
			if s == nil {
				return
			}
			size := min(r.rest, n.f.offer.part)
			err := n.f.fetch(s, r.view, r.at, size, p.to, r.from)
			if err != nil {
				n.release(s)
			}
			if errors.Is(err, errAgain) {
				return
			}
			if err != nil {
				r.err = err
				break
			}
			s.read, s.peer = r, p
			r.at, r.rest, r.from.at = r.at+size, r.rest-size, r.from.at+uint64(size)
			m.parts++
			r.parts++
			r.view.under++
			p.reading++
		}
	}
}

// settle completes the reads that have ended.
func (m *messages) settle() {
	left := m.reads[:0]
	for _, r := range m.reads {
		if r.parts > 0 || r.rest > 0 && r.err == nil {
			left = append(left, r)
			continue
		}
		m.done = append(m.done, sdkfabric.Completion{Op: r.op, Err: r.err})
	}
	clear(m.reads[len(left):])
	if m.reads = left; len(m.done) > 0 {
		m.l.wakeup()
	}
}

// wasRead handles the end of a part.
func (n *node) wasRead(s *slot, code int) {
	r := s.read
	s.peer.reading--
	n.release(s)
	r.parts--
	r.view.under--
	if r.orphan {
		if r.view.under == 0 {
			delete(n.orphans, r.view)
			r.view.mem.unmap()
		}
		return
	}
	if code != 0 && r.err == nil {
		r.err = &fabricError{"fi_read", code}
	}
	r.m.parts--
	r.m.since = time.Now()
	r.m.issue()
}

// Completed returns the reads that have ended.
func (m *messages) Completed(done []sdkfabric.Completion) int {
	m.l.n.mu.Lock()
	defer m.l.n.mu.Unlock()
	if len(m.reads) > 0 && m.parts == 0 {
		m.issue() // the provider had no room
	}
	n := copy(done, m.done)
	m.done = append(m.done[:0], m.done[n:]...)
	return n
}

// Handle returns a descriptor that is readable when one that has called Arm is to be woken.
func (m *messages) Handle() int { return m.l.Handle() }

// Arm says that the user is about to sleep on Handle.
func (m *messages) Arm() bool { return m.l.Arm(link.Readable) }

// ready reports whether the user has something to do.
func (m *messages) ready() bool {
	l := m.l
	size, whole := m.waiting()
	return whole || l.unread >= sizeBytes && size > maxMessage || l.ends && l.got == l.end || l.state == broken ||
		len(m.done) > 0 || m.need > 0 && m.room(m.need) || len(m.reads) > 0 && m.parts == 0
}

// tick ends a link whose read does not end.
func (m *messages) tick(now time.Time) {
	if m.parts > 0 && now.Sub(m.since) > max(m.l.n.set.patience(), stuckTime) {
		m.l.breakOff(errStuckRead)
	}
}

// Close ends the link. What Send has taken still arrives.
func (m *messages) Close() error {
	m.abandon()
	return m.l.Close()
}

// Break ends the link so that the peer sees a failure.
func (m *messages) Break() {
	m.abandon()
	m.l.Break()
}

// abandon takes the memory that is read into from the provider, and makes no further read begin.
func (m *messages) abandon() {
	n := m.l.n
	n.mu.Lock()
	defer n.mu.Unlock()
	m.over = true
	for _, r := range m.reads {
		r.orphan = true
	}
	for r, v := range m.views {
		delete(r.views, m)
		n.closeView(v)
	}
	clear(m.views)
	m.reads, m.done, m.parts = nil, nil, 0
}
