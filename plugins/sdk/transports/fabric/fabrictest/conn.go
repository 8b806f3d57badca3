package fabrictest

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports/fabric"
)

// What a Conn sends over its socket, by the first byte of each packet.
const (
	tagData   = 1 // a message
	tagTable  = 2 // the table of registrations, with a descriptor: the first packet
	tagFetch  = 3 // a key follows: the memory of that is wanted
	tagMemory = 4 // a key follows, with the descriptor, or without one if the key is not valid
	tagClose  = 5 // Close was called
)

const (
	maxMessage = 64<<10 + 256
	maxReads   = 32 // under way at a time
	maxMapped  = 64 // regions of the other side that are mapped at a time
)

// Conn is a connection over a SOCK_SEQPACKET socket.
type Conn struct {
	domain *Domain
	rails  int
	down   [64]atomic.Bool // by rail: reads fail

	mu   sync.Mutex // of what follows, since Break comes from anywhere
	sock int        // -1: it has ended

	table  *[places]atomic.Uint64 // of the other side; nil: it has not come
	mapped map[string][]byte      // memory of the other side, by key; nil: it is being fetched
	reads  []fabric.Request
	owed   []string // keys that the other side has fetched
	hello  bool     // the table was sent
	tail   bool     // the other side has called Close
	full   bool     // the last packet had no room
	tag    [1]byte
	pieces [][]byte
}

// NewConn makes a Conn of a socket, which it owns, with so many rails.
func NewConn(d *Domain, sock, rails int) *Conn {
	return &Conn{domain: d, sock: sock, rails: rails, mapped: map[string][]byte{}}
}

// Limits implements fabric.Conn.
func (c *Conn) Limits() fabric.Limits { return fabric.Limits{Message: maxMessage, Rails: c.rails} }

// FailRail has all reads by a rail fail from now on.
func (c *Conn) FailRail(n int) { c.down[n].Store(true) }

// packet sends one packet. It reports false if there is no room.
func (c *Conn) packet(tag byte, batch [][]byte, fds ...int) (bool, error) {
	c.tag[0] = tag
	c.pieces = append(append(c.pieces[:0], c.tag[:]), batch...)
	var oob []byte
	if len(fds) > 0 {
		oob = unix.UnixRights(fds...)
	}
	if c.sock < 0 {
		return false, link.ErrClosed
	}
	for {
		_, err := unix.SendmsgBuffers(c.sock, c.pieces, oob, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		c.full = errors.Is(err, unix.EAGAIN)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EINTR):
		case c.full, errors.Is(err, unix.EPIPE), errors.Is(err, unix.ECONNRESET):
			return false, nil // Recv says whether the end was in order
		default:
			return false, fmt.Errorf("send: %w", err)
		}
	}
}

// serve sends what the other side waits for, and reports false if there is no room.
func (c *Conn) serve() (ok bool, err error) {
	if !c.hello {
		if c.hello, err = c.packet(tagTable, nil, c.domain.file); !c.hello || err != nil {
			return false, err
		}
	}
	for len(c.owed) > 0 {
		k := c.owed[0]
		key := [][]byte{[]byte(k)}
		if c.domain.withFile(k, func(fd int) { ok, err = c.packet(tagMemory, key, fd) }) != nil {
			ok, err = c.packet(tagMemory, key)
		}
		if !ok || err != nil {
			return false, err
		}
		c.owed = c.owed[1:]
	}
	return true, nil
}

// Send implements fabric.Conn.
func (c *Conn) Send(batch [][]byte) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ok, err := c.serve(); !ok || err != nil {
		return false, err
	}
	return c.packet(tagData, batch)
}

// Recv implements fabric.Conn.
func (c *Conn) Recv(batch [][]byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.serve(); err != nil {
		return 0, err
	}
	oob := make([]byte, unix.CmsgSpace(4))
	for {
		c.tag[0] = 0
		c.pieces = append(append(c.pieces[:0], c.tag[:]), batch...)
		n, oobn, flags, err := c.take(oob)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.ECONNRESET): // the latter comes once, before what was sent
			continue
		case errors.Is(err, unix.EAGAIN):
			return 0, nil
		case err != nil:
			return 0, fmt.Errorf("receive: %w", err)
		case n == 0 && c.tail:
			return 0, io.EOF
		case n == 0:
			return 0, fmt.Errorf("receive: %w", io.ErrUnexpectedEOF)
		case flags&unix.MSG_TRUNC != 0:
			return 0, errors.New("receive: a message is longer than expected") //nolint:err113 // for a person
		}
		if c.tag[0] == tagData {
			return n - 1, nil
		}
		if err := c.internal(c.tag[0], flatten(batch, n-1), rights(oob[:oobn])); err != nil {
			return 0, err
		}
		if len(c.owed) > 0 {
			if _, err := c.serve(); err != nil {
				return 0, err
			}
		}
	}
}

// take receives a packet into c.pieces.
func (c *Conn) take(oob []byte) (n, oobn, flags int, err error) {
	if c.sock < 0 {
		return 0, 0, 0, link.ErrClosed
	}
	n, oobn, flags, _, err = unix.RecvmsgBuffers(c.sock, c.pieces, oob, unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
	return n, oobn, flags, err
}

func flatten(batch [][]byte, n int) string {
	b := slices.Concat(batch...)
	return string(b[:n])
}

// rights returns the descriptors of a packet, which has one at most.
func rights(oob []byte) (fds []int) {
	if all, err := unix.ParseSocketControlMessage(oob); err == nil && len(all) == 1 {
		fds, _ = unix.ParseUnixRights(&all[0]) // none, if it is of another kind
	}
	return fds
}

// internal handles a packet that is no message. It closes the descriptors.
func (c *Conn) internal(tag byte, key string, fds []int) (err error) {
	defer func() {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
	}()
	switch {
	case tag == tagTable && len(fds) == 1 && c.table == nil:
		c.table, err = mapTable(fds[0])
		return err
	case tag == tagFetch && len(c.owed) < maxReads:
		c.owed = append(c.owed, key)
		return nil
	case tag == tagMemory && len(fds) <= 1:
		if mem, asked := c.mapped[key]; !asked || mem != nil {
			break
		}
		delete(c.mapped, key)
		if len(fds) == 1 {
			c.mapped[key], err = mapFile(fds[0], 0)
		}
		return err
	case tag == tagClose:
		c.tail = true
		return nil
	}
	return fmt.Errorf("receive: a packet of kind %d with %d descriptors", tag, len(fds)) //nolint:err113 // for a person
}

// Read implements fabric.Conn.
func (c *Conn) Read(r fabric.Request) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.reads) == maxReads {
		return false, nil
	}
	k := string(r.Key)
	if _, known := c.mapped[k]; !known {
		c.unmapStale()
		ok, err := c.packet(tagFetch, [][]byte{r.Key})
		if !ok || err != nil {
			return false, err
		}
		c.mapped[k] = nil
	}
	c.reads = append(c.reads, r)
	return true, nil
}

// unmapStale makes room for a further region of the other side.
func (c *Conn) unmapStale() {
	for k, mem := range c.mapped {
		used := slices.ContainsFunc(c.reads, func(r fabric.Request) bool { return string(r.Key) == k })
		if mem != nil && !used && (len(c.mapped) >= maxMapped || !c.valid(k)) {
			_ = unix.Munmap(mem) // cannot fail: it is mapped
			delete(c.mapped, k)
		}
	}
}

// valid reports whether the other side has the key registered.
func (c *Conn) valid(k string) bool {
	place, gen, err := parseKey(k)
	return err == nil && c.table != nil && c.table[place].Load() == gen
}

// Completed implements fabric.Conn: it is here that bytes move.
func (c *Conn) Completed(done []fabric.Completion) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	rest := c.reads[:0]
	for i, r := range c.reads {
		k := string(r.Key)
		mem, known := c.mapped[k]
		if n == len(done) || known && mem == nil {
			rest = append(rest, c.reads[i])
			continue
		}
		done[n] = fabric.Completion{Op: r.Op, Err: c.read(&r, k, mem)}
		n++
	}
	clear(c.reads[len(rest):])
	c.reads = rest
	return n
}

func (c *Conn) read(r *fabric.Request, k string, mem []byte) error {
	if c.down[r.Rail].Load() {
		return fmt.Errorf("rail %d is down", r.Rail) //nolint:err113 // for a person
	}
	if !c.valid(k) {
		return ErrKey
	}
	if r.From > uint64(len(mem)) || uint64(len(r.Into)) > uint64(len(mem))-r.From {
		return fmt.Errorf("%w: %d bytes at %d of %d", ErrKey, len(r.Into), r.From, len(mem))
	}
	copy(r.Into, mem[r.From:])
	if !c.valid(k) {
		return ErrKey
	}
	return nil
}

// Handle implements fabric.Conn.
func (c *Conn) Handle() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sock
}

// Arm implements fabric.Conn. Handle does not become readable when a packet has room again, so that
// a connection without room does not sleep. That is for moments: the other side takes all that it
// has allowed.
func (c *Conn) Arm() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.reads {
		if c.mapped[string(r.Key)] != nil {
			return true
		}
	}
	fds := []unix.PollFd{{Fd: int32(c.sock), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return c.full || err != nil || n > 0
}

// Close implements fabric.Conn.
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sock < 0 {
		return nil
	}
	ok, err := c.serve()
	if ok && err == nil {
		ok, err = c.packet(tagClose, nil)
	}
	if !ok && err == nil {
		err = errors.New("no room for the end of a connection") //nolint:err113 // for a person
	}
	c.end()
	return err
}

// Break implements fabric.Conn.
func (c *Conn) Break() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end()
}

// end closes the socket and unmaps the other side's memory: nothing is read any more.
func (c *Conn) end() {
	if c.sock < 0 {
		return
	}
	_ = unix.Close(c.sock)
	c.sock, c.reads = -1, nil
	for _, mem := range c.mapped {
		if mem != nil {
			_ = unix.Munmap(mem) // cannot fail: it is mapped
		}
	}
	clear(c.mapped)
	if c.table != nil {
		_ = unix.Munmap(unsafe.Slice((*byte)(unsafe.Pointer(c.table)), tableSize))
		c.table = nil
	}
}
