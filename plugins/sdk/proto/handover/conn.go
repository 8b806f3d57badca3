package handover

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// ErrTruncated is wrapped by the error of a record that lost bytes or descriptors on the
// way. The channel can still be used.
var ErrTruncated = errors.New("record was cut short by the kernel")

// Conn is one end of a descriptor channel. Send may be called by several
// goroutines, Receive by one.
type Conn struct {
	c    *net.UnixConn
	send sync.Mutex
	out  []byte
	in   []byte
	oob  []byte
}

// Pair makes a channel: this process's end and the other end as a file for a child's
// ExtraFiles. The caller closes both.
func Pair() (*Conn, *os.File, error) {
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("descriptor channel: socketpair: %w", err)
	}
	c, err := Open(p[0])
	if err != nil {
		unix.Close(p[1])
		return nil, nil, err
	}
	return c, os.NewFile(uintptr(p[1]), "descriptor channel"), nil
}

// Open makes a Conn of a descriptor, which it takes over even if it fails. It fails if the
// descriptor is not a Unix SOCK_SEQPACKET socket.
func Open(fd int) (*Conn, error) {
	if t, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err != nil || t != unix.SOCK_SEQPACKET {
		unix.Close(fd)
		return nil, fmt.Errorf("descriptor channel: fd %d is not a SOCK_SEQPACKET socket", fd)
	}
	f := os.NewFile(uintptr(fd), "descriptor channel")
	defer f.Close() // FileConn has made a copy
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("descriptor channel: %w", err)
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, fmt.Errorf("descriptor channel: fd %d is not a Unix socket", fd)
	}
	// One byte more than any record, and room for one more descriptor, so that a larger
	// record is noticed.
	return &Conn{c: u, in: make([]byte, MaxRecord+1), oob: make([]byte, unix.CmsgSpace(4*(MaxDescriptors+1)))}, nil
}

// Send sends r. In every case it closes r's descriptors: an open copy here would hide the
// end of the link from the peer. It gives up at the deadline if the other side does not
// read.
func (c *Conn) Send(r *Record, deadline time.Time) error {
	defer r.Close()
	c.send.Lock()
	defer c.send.Unlock()
	b, err := AppendRecord(c.out[:0], r)
	if err != nil {
		return err
	}
	c.out = b
	var oob []byte
	if len(r.FDs) > 0 {
		oob = unix.UnixRights(r.FDs...)
	}
	if err := c.c.SetWriteDeadline(deadline); err != nil {
		return fmt.Errorf("descriptor channel: %w", err)
	}
	if _, _, err := c.c.WriteMsgUnix(b, oob, nil); err != nil {
		return fmt.Errorf("descriptor channel: link %d: %w", r.Link, err)
	}
	return nil
}

// Receive waits for the next record, whose descriptors are close-on-exec and owned by the
// caller. io.EOF means that the other process has ended. After ErrTruncated or ErrRecord,
// with which it returns what is known of the record and no descriptors, the channel can
// still be read.
func (c *Conn) Receive() (Record, error) {
	// Package net asks for MSG_CMSG_CLOEXEC.
	n, oobn, flags, _, err := c.c.ReadMsgUnix(c.in, c.oob)
	if err != nil {
		return Record{}, endOf(err)
	}
	fds, err := rights(c.oob[:oobn])
	if err != nil {
		return Record{}, err
	}
	if n == 0 && len(fds) == 0 {
		return Record{}, io.EOF
	}
	r, announced, err := ParseRecord(c.in[:n])
	switch {
	case flags&unix.MSG_TRUNC != 0:
		err = fmt.Errorf("%w: more than %d bytes: %w", ErrTruncated, MaxRecord, ErrRecord)
	case flags&unix.MSG_CTRUNC != 0:
		err = fmt.Errorf("%w: link %d: of %d descriptors %d came; is the limit of open files reached (ulimit -n)?", ErrTruncated, r.Link, announced, len(fds))
	case err == nil && announced != len(fds):
		err = fmt.Errorf("%w: link %d announces %d descriptors and brings %d", ErrRecord, r.Link, announced, len(fds))
	}
	if err != nil {
		closeAll(fds)
		return Record{Kind: r.Kind, Link: r.Link, Mode: r.Mode}, err
	}
	r.FDs = fds
	r.Preread = append([]byte(nil), r.Preread...)
	return r, nil
}

// Close ends the channel: the other side's Receive reports io.EOF.
func (c *Conn) Close() error { return c.c.Close() }

// Close closes the record's descriptors.
func (r *Record) Close() {
	closeAll(r.FDs)
	r.FDs = nil
}

// endOf converts all errors by which a dead peer shows to io.EOF.
func endOf(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE) {
		return io.EOF
	}
	return fmt.Errorf("descriptor channel: %w", err)
}

func rights(oob []byte) ([]int, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, fmt.Errorf("%w: control message: %w", ErrRecord, err)
	}
	var all []int
	for i := range msgs {
		if fds, err := unix.ParseUnixRights(&msgs[i]); err == nil {
			all = append(all, fds...)
		}
	}
	return all, nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}
