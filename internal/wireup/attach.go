package wireup

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// AttachListener accepts connections of procs that the node has not started: an abstract Unix
// socket, for processes of this user.
type AttachListener struct{ *net.UnixListener }

// Attached is a proc that has identified itself by KindAttach.
type Attached struct {
	Conn *Conn
	PID  int
	Message
}

// greeting is how long a process may take to say who it is.
const greeting = 10 * time.Second

// AttachName draws a random name for a listener, different for each job.
func AttachName() string { return "impi-" + rand.Text() }

// ListenAttach listens at a name of AttachName, for procs that call Attach.
func ListenAttach(name string) (AttachListener, error) {
	l, err := net.ListenUnix("unixpacket", abstract(name))
	if err != nil {
		return AttachListener{}, fmt.Errorf("a socket for the procs: %w", err)
	}
	return AttachListener{l}, nil
}

func abstract(name string) *net.UnixAddr { return &net.UnixAddr{Name: "@" + name, Net: "unixpacket"} }

// Attach connects to a node's listener, which must be of the same user; pid is the node's process.
// The caller sends KindAttach next.
func Attach(name string) (conn *Conn, pid int, err error) {
	c, err := net.DialUnix("unixpacket", nil, abstract(name))
	if err != nil {
		return nil, 0, fmt.Errorf("its socket cannot be reached; are all its ranks in one network namespace? %w", err)
	}
	if pid, err = peerOf(c); err != nil {
		return nil, 0, errors.Join(err, c.Close())
	}
	return newConn(c), pid, nil
}

// ReceiveAttach receives the KindAttach of a proc that has connected. It takes over the connection.
func ReceiveAttach(c *net.UnixConn) (a Attached, err error) {
	a.Conn = newConn(c)
	if a.PID, err = peerOf(c); err == nil {
		a.Message, err = a.hear(greeting)
	}
	if err != nil {
		return Attached{}, errors.Join(err, c.Close())
	}
	return a, nil
}

func (a *Attached) hear(limit time.Duration) (Message, error) {
	m, fds, err := recvWithin(a.Conn, limit)
	CloseAll(fds)
	switch {
	case err != nil:
		err = fmt.Errorf("process %d: %w", a.PID, err)
	case m.Kind != KindAttach || m.Version != Version:
		err = fmt.Errorf("process %d begins with %q of version %d, not %q of version %d", a.PID, m.Kind, m.Version, KindAttach, Version)
	}
	return m, err
}

func recvWithin(c *Conn, limit time.Duration) (m Message, fds []int, err error) {
	if err = c.RecvBy(time.Now().Add(limit)); err == nil {
		m, fds, err = c.Recv()
	}
	return m, fds, errors.Join(err, c.RecvBy(time.Time{}))
}

// peerOf gives the process at the other end, which must be of this user.
func peerOf(c *net.UnixConn) (pid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	if cerr := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); cerr != nil {
		err = cerr
	}
	if err != nil {
		return 0, fmt.Errorf("who is at the other end of a socket cannot be found out: %w", err)
	}
	if int(cred.Uid) != os.Geteuid() {
		return 0, fmt.Errorf("the other end of a socket is of user %d, not %d", cred.Uid, os.Geteuid())
	}
	return int(cred.Pid), nil
}
