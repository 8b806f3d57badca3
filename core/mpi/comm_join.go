package mpi

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/wire"
)

// joinLimit is how long CommJoin waits for the other end, for what it has to say and
// then for its link.
const joinLimit = 30 * time.Second

// CommJoin makes an intercommunicator of this proc and the one at the other end of a
// socket, which calls it as well (MPI_Comm_join). Each side's group is its proc alone.
// The two may be of one job or of several, which must be able to meet: a program that
// no node has started cannot.
//
// fd is a connected stream socket. It is used to agree on the rest and for nothing else;
// it stays open and the caller's, and what follows in it is not touched. No byte may be
// on its way in it. CommJoin blocks until the other end has called it too, for at most
// 30 seconds; then there may be a part of a message in the socket.
//
// Errors: ErrArg for what is no connected stream socket, or has its other end in this
// proc; ErrJoin, of class MPI_ERR_OTHER, where the other end does not join or cannot be
// reached; ErrAlone where no other procs can be met.
func CommJoin(fd int) (*Comm, error) {
	p, err := current()
	if err != nil {
		return nil, failed("CommJoin", err)
	}
	return p.commJoin(fd)
}

func (p *process) commJoin(fd int) (*Comm, error) {
	c, err := p.joinBy(fd)
	return c, p.failed("CommJoin", err)
}

func (p *process) joinBy(fd int) (*Comm, error) {
	if err := joinable(fd); err != nil {
		return nil, err
	}
	p.lock()
	port, err := p.makePort(0)
	p.unlock()
	if err != nil {
		return nil, err
	}
	shut := p.machine.AfterFunc(2*joinLimit, func() { p.endJoin(port) }) // Accept would wait for ever
	defer p.endJoin(port)
	defer shut.Stop()
	mine := joiner{who: p.member(p.self.Self()), port: port}
	p.random(mine.nonce[:])
	theirs, err := swapJoiners(fd, &mine, time.Now().Add(joinLimit))
	if err != nil {
		return nil, err
	}
	if theirs.who == mine.who {
		return nil, fmt.Errorf("%w: both ends of the socket are of this proc", ErrArg)
	}
	var c *Comm
	if mine.before(theirs) {
		c, err = p.self.connect(port, nil, 0, toAccept)
	} else {
		c, err = p.self.connect(theirs.port, nil, 0, toConnect)
	}
	if err != nil {
		err = fmt.Errorf("%w: %s", ErrJoin, err.Error()) // not the class of a port, of which the program knows nothing
	}
	return c, err
}

// endJoin closes the port of a join, if it is open.
func (p *process) endJoin(port string) {
	p.lock()
	_ = p.shutPort(port)
	p.unlock()
}

// joinable tells whether a descriptor can be joined by.
func joinable(fd int) error {
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	switch {
	case err != nil:
		return fmt.Errorf("%w: descriptor %d is no socket: %w", ErrArg, fd, err)
	case kind != unix.SOCK_STREAM:
		return fmt.Errorf("%w: descriptor %d is no stream socket", ErrArg, fd)
	}
	if _, err := unix.Getpeername(fd); err != nil {
		return fmt.Errorf("%w: descriptor %d is not connected: %w", ErrArg, fd, err)
	}
	return nil
}

// joiner is what each end of the socket tells the other: who it is, and by which port
// it can be reached.
type joiner struct {
	who   dynamic.Member
	nonce [16]byte
	port  string
}

// A joiner in the socket: what it is, version, world, rank, nonce, length of the port's
// name, and the name. Nobody sends more, so that nobody reads too much.
const (
	joinMagic   = "impijoin"
	joinVersion = 1
	joinHead    = len(joinMagic) + 2 + dynamic.WorldSize + 4 + 16 + 2
)

// before tells which end accepts.
func (x *joiner) before(y *joiner) bool {
	if c := x.who.Compare(y.who); c != 0 {
		return c < 0
	}
	return bytes.Compare(x.nonce[:], y.nonce[:]) < 0
}

func (x *joiner) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(append(b, joinMagic...), joinVersion)
	b = binary.BigEndian.AppendUint32(append(b, x.who.World[:]...), uint32(x.who.Rank))
	b = binary.BigEndian.AppendUint16(append(b, x.nonce[:]...), uint16(len(x.port)))
	return append(b, x.port...)
}

// readHead reads all but the port's name, which has that many bytes. b may come from
// anybody.
func (x *joiner) readHead(b []byte) (port int, err error) {
	magic, b := string(b[:len(joinMagic)]), b[len(joinMagic):]
	version, b := binary.BigEndian.Uint16(b), b[2:]
	if magic != joinMagic || version != joinVersion {
		return 0, fmt.Errorf("%w: it says %q, version %d, want %q, version %d", ErrJoin, magic, version, joinMagic, joinVersion)
	}
	b = b[copy(x.who.World[:], b):]
	x.who.Rank, b = wire.WorldRank(binary.BigEndian.Uint32(b)), b[4:]
	b = b[copy(x.nonce[:], b):]
	if port = int(binary.BigEndian.Uint16(b)); port == 0 || port > dynamic.MaxPortName {
		return 0, fmt.Errorf("%w: its port's name has %d bytes, at most %d are allowed", ErrJoin, port, dynamic.MaxPortName)
	}
	return port, nil
}

// swapJoiners sends one joiner and receives another. What is sent fits into the
// buffer of any socket in which nothing else is on its way.
func swapJoiners(fd int, mine *joiner, until time.Time) (*joiner, error) {
	if err := pass(fd, mine.append(nil), unix.POLLOUT, until, sendSome); err != nil {
		return nil, err
	}
	theirs, head := &joiner{}, make([]byte, joinHead)
	if err := pass(fd, head, unix.POLLIN, until, recvSome); err != nil {
		return nil, err
	}
	n, err := theirs.readHead(head)
	if err != nil {
		return nil, err
	}
	name := make([]byte, n)
	if err := pass(fd, name, unix.POLLIN, until, recvSome); err != nil {
		return nil, err
	}
	theirs.port = string(name)
	return theirs, nil
}

func sendSome(fd int, b []byte) (int, error) {
	return unix.SendmsgN(fd, b, nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
}

func recvSome(fd int, b []byte) (int, error) {
	n, _, err := unix.Recvfrom(fd, b, unix.MSG_DONTWAIT)
	if n == 0 && err == nil {
		err = fmt.Errorf("%w: it is closed", ErrJoin)
	}
	return n, err
}

// pass has step send or receive all of b, and waits for the socket where it must. It
// does not matter whether the socket blocks.
func pass(fd int, b []byte, event int16, until time.Time, step func(int, []byte) (int, error)) error {
	for len(b) > 0 {
		switch n, err := step(fd, b); {
		case err == nil:
			b = b[n:]
			continue
		case errors.Is(err, ErrJoin):
			return err
		case !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR):
			return fmt.Errorf("%w: %w", ErrJoin, err)
		}
		left := time.Until(until)
		if left <= 0 {
			return fmt.Errorf("%w: it has not said enough for %v", ErrJoin, joinLimit)
		}
		fds := []unix.PollFd{{Fd: int32(fd), Events: event}}
		if _, err := unix.Poll(fds, int(left/time.Millisecond)+1); err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("%w: %w", ErrJoin, err)
		}
	}
	return nil
}
