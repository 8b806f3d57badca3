// Package wireup is the protocol between a node and its procs: the control socket that a
// proc inherits, its messages, and the descriptors that come with them. It carries no user
// data.
//
// It does not use gRPC, which passes no descriptors and would make hello 18.8 MB instead of
// 6.8 and double the CPU time of its start: docs/decisions/0042-which-framings-are-grpc.md.
package wireup

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// EnvSocket names the environment variable with the descriptor number of the
// proc's end of the control socket.
const EnvSocket = "IMPI_CONTROL_FD"

// EnvProcs names the environment variable with the number of the job's procs, for procs that need
// it before MPI_Init; it is not set if the node does not know it when the proc starts.
const EnvProcs = "IMPI_PROCS"

const (
	maxMessage = 64 << 10 // maximum bytes of one record
	maxFDs     = 72       // maximum descriptors of one record: a board has one for each proc
)

// ErrMessage is wrapped by the error for a record that breaks the protocol.
var ErrMessage = errors.New("malformed control message")

// Conn is one end of a control socket. Send and Recv may be used by different
// goroutines; Send by several.
type Conn struct {
	conn *net.UnixConn
	mu   sync.Mutex // serialises Send
	buf  []byte
	oob  []byte
}

// Pair creates a connected pair: the node's Conn, and the proc's end as a file to be inherited. The
// caller closes the file after the proc has started.
func Pair() (*Conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("control socket: %w", err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "impi-control")
	ours, err := NewConn(fds[0])
	if err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return ours, theirs, nil
}

// NewConn makes a Conn of a SOCK_SEQPACKET descriptor, which it takes over.
func NewConn(fd int) (*Conn, error) {
	unix.CloseOnExec(fd)
	f := os.NewFile(uintptr(fd), "impi-control")
	c, err := net.FileConn(f) // makes a copy, so ours must be closed
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("control socket, descriptor %d: %w", fd, err)
	}
	uc, ok := c.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("control socket, descriptor %d: %T is not a Unix socket", fd, c), c.Close())
	}
	return newConn(uc), nil
}

func newConn(c *net.UnixConn) *Conn {
	return &Conn{conn: c, buf: make([]byte, maxMessage), oob: make([]byte, unix.CmsgSpace(4*maxFDs))}
}

// Inherited returns the control socket with which this process was started. It removes the
// environment variable, so that children do not use the socket. ok is false if the process
// was not started by a node.
func Inherited() (c *Conn, ok bool, err error) {
	v, ok := os.LookupEnv(EnvSocket)
	if !ok {
		return nil, false, nil
	}
	fd, err := strconv.Atoi(v)
	if err != nil || fd < 3 {
		return nil, true, fmt.Errorf("%s=%q is not a descriptor; only impi-node sets it", EnvSocket, v)
	}
	if err := os.Unsetenv(EnvSocket); err != nil {
		return nil, true, err
	}
	c, err = NewConn(fd)
	return c, true, err
}

// Send sends m with descriptors, which the caller keeps. It blocks while the peer does not
// read.
func (c *Conn) Send(m Message, fds ...int) error {
	b, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("control message %s: %w", m.Kind, err)
	}
	if len(b) > maxMessage || len(fds) > maxFDs {
		return fmt.Errorf("control message %s of %d bytes and %d descriptors: %w", m.Kind, len(b), len(fds), ErrMessage)
	}
	var oob []byte
	if len(fds) > 0 {
		oob = unix.UnixRights(fds...)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, _, err := c.conn.WriteMsgUnix(b, oob, nil); err != nil {
		return fmt.Errorf("control message %s: %w", m.Kind, err)
	}
	return nil
}

// RecvBy sets the time until which Recv waits; the zero time is no limit.
func (c *Conn) RecvBy(t time.Time) error { return c.conn.SetReadDeadline(t) }

// Recv waits for the next message. The caller owns the descriptors, which are
// close-on-exec. io.EOF means that the peer has gone.
func (c *Conn) Recv() (m Message, fds []int, err error) {
	n, oobn, flags, _, err := c.conn.ReadMsgUnix(c.buf, c.oob)
	if errors.Is(err, unix.ECONNRESET) {
		// The peer ended before it had read everything. The kernel reports that once,
		// before it returns what the peer has sent.
		n, oobn, flags, _, err = c.conn.ReadMsgUnix(c.buf, c.oob)
	}
	if err != nil {
		return m, nil, err
	}
	if n == 0 && oobn == 0 {
		return m, nil, io.EOF
	}
	fds, err = descriptors(c.oob[:oobn])
	if err == nil && flags&(unix.MSG_CTRUNC|unix.MSG_TRUNC) != 0 {
		err = fmt.Errorf("truncated: %w", ErrMessage)
	}
	if err == nil {
		if jerr := json.Unmarshal(c.buf[:n], &m); jerr != nil {
			err = fmt.Errorf("%w: %w", ErrMessage, jerr)
		}
	}
	if err != nil {
		CloseAll(fds)
		return Message{}, nil, err
	}
	return m, fds, nil
}

// Close closes the socket; a blocked Recv returns.
func (c *Conn) Close() error { return c.conn.Close() }

// descriptors returns all descriptors in ancillary data, even if a part of it is malformed,
// so that none leak.
func descriptors(oob []byte) (fds []int, err error) {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, fmt.Errorf("ancillary data: %w", err)
	}
	for i := range msgs {
		got, perr := unix.ParseUnixRights(&msgs[i])
		if perr != nil {
			err = fmt.Errorf("ancillary data: %w", perr)
			continue
		}
		fds = append(fds, got...)
	}
	return fds, err
}

// CloseAll closes descriptors that are not needed.
func CloseAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd) // an error cannot be handled
	}
}
