package meet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/proc"
	"golang.org/x/sys/unix"
)

// joinLimit is how long CommJoin waits for the other end's joiner, and then for its link.
const joinLimit = 30 * time.Second

// CommJoin connects this proc with the one at the other end of a stream socket, which calls it too
// (MPI-4.1, 11.10.5). It waits for that one, and then for the link, for joinLimit each, and leaves
// the socket open.
func CommJoin(p *proc.Process, fd int) (*proc.Comm, error) {
	if err := joinable(fd); err != nil {
		return nil, err
	}
	p.Lock()
	port, err := makePort(p, 0)
	p.Unlock()
	if err != nil {
		return nil, err
	}
	shut := p.Machine.AfterFunc(2*joinLimit, func() { endJoin(p, port) }) // Accept would wait for ever
	defer endJoin(p, port)
	defer shut.Stop()
	mine := JoinPeer{Who: p.Worlds.Member(p.Comms.Self.Self()), Port: port}
	random(p, mine.nonce[:])
	theirs, err := ExchangeJoinPeers(fd, &mine, time.Now().Add(joinLimit))
	if err != nil {
		return nil, err
	}
	if theirs.Who == mine.Who {
		return nil, fmt.Errorf("%w: both ends of the socket are of this proc", proc.ErrArg)
	}
	var c *proc.Comm
	if mine.before(theirs) {
		c, err = Connect(p.Comms.Self, port, nil, 0, proc.ToAccept)
	} else {
		c, err = Connect(p.Comms.Self, theirs.Port, nil, 0, proc.ToConnect)
	}
	if err != nil {
		err = fmt.Errorf("%w: %s", proc.ErrJoin, err.Error()) // the error class is not that of a port, as the program has none
	}
	return c, err
}

func endJoin(p *proc.Process, port string) {
	p.Lock()
	_ = shutPort(p, port)
	p.Unlock()
}

// joinable returns an error unless fd is a connected stream socket (MPI-4.1, 11.10.5).
func joinable(fd int) error {
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	switch {
	case err != nil:
		return fmt.Errorf("%w: descriptor %d is no socket: %w", proc.ErrArg, fd, err)
	case kind != unix.SOCK_STREAM:
		return fmt.Errorf("%w: descriptor %d is no stream socket", proc.ErrArg, fd)
	}
	if _, err := unix.Getpeername(fd); err != nil {
		return fmt.Errorf("%w: descriptor %d is not connected: %w", proc.ErrArg, fd, err)
	}
	return nil
}

// JoinPeer is the message that each end of the socket of MPI_Comm_join (MPI-4.1, 11.10.5) sends the
// other: its world and rank, and the port at which it can be reached.
type JoinPeer struct {
	Who   dynamic.WorldProc
	nonce [16]byte
	Port  string
}

// Layout of a joiner in the socket: magic, version, world, rank, nonce, length of the port's name,
// and the name. The reader reads no further, since the data after it is the program's.
const (
	JoinMagic   = "impijoin"
	joinVersion = 1
	JoinHead    = len(JoinMagic) + 2 + dynamic.WorldIDSize + 4 + 16 + 2
)

// before reports whether this end accepts and the other connects.
func (x *JoinPeer) before(y *JoinPeer) bool {
	if c := x.Who.Compare(y.Who); c != 0 {
		return c < 0
	}
	return bytes.Compare(x.nonce[:], y.nonce[:]) < 0
}

// Append appends the message to b, in the layout above.
func (x *JoinPeer) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(append(b, JoinMagic...), joinVersion)
	b = binary.BigEndian.AppendUint32(append(b, x.Who.World[:]...), uint32(x.Who.Rank))
	b = binary.BigEndian.AppendUint16(append(b, x.nonce[:]...), uint16(len(x.Port)))
	return append(b, x.Port...)
}

// ReadHead parses all fields except the port's name, and returns the length of the name. b may come
// from any peer.
func (x *JoinPeer) ReadHead(b []byte) (port int, err error) {
	magic, b := string(b[:len(JoinMagic)]), b[len(JoinMagic):]
	version, b := binary.BigEndian.Uint16(b), b[2:]
	if magic != JoinMagic || version != joinVersion {
		return 0, fmt.Errorf("%w: the peer sent %q, version %d, want %q, version %d", proc.ErrJoin, magic, version, JoinMagic, joinVersion)
	}
	b = b[copy(x.Who.World[:], b):]
	x.Who.Rank, b = wire.WorldRank(binary.BigEndian.Uint32(b)), b[4:]
	b = b[copy(x.nonce[:], b):]
	if port = int(binary.BigEndian.Uint16(b)); port == 0 || port > dynamic.MaxPortName {
		return 0, fmt.Errorf("%w: the peer's port name has %d bytes, at most %d are allowed", proc.ErrJoin, port, dynamic.MaxPortName)
	}
	return port, nil
}

// ExchangeJoinPeers sends one JoinPeer and receives another. Both ends may send first, since a
// joiner fits into the empty buffer of any socket.
func ExchangeJoinPeers(fd int, mine *JoinPeer, until time.Time) (*JoinPeer, error) {
	if err := pass(fd, mine.Append(nil), unix.POLLOUT, until, sendSome); err != nil {
		return nil, err
	}
	theirs, head := &JoinPeer{}, make([]byte, JoinHead)
	if err := pass(fd, head, unix.POLLIN, until, recvSome); err != nil {
		return nil, err
	}
	n, err := theirs.ReadHead(head)
	if err != nil {
		return nil, err
	}
	name := make([]byte, n)
	if err := pass(fd, name, unix.POLLIN, until, recvSome); err != nil {
		return nil, err
	}
	theirs.Port = string(name)
	return theirs, nil
}

func sendSome(fd int, b []byte) (int, error) {
	return unix.SendmsgN(fd, b, nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
}

func recvSome(fd int, b []byte) (int, error) {
	n, _, err := unix.Recvfrom(fd, b, unix.MSG_DONTWAIT)
	if n == 0 && err == nil {
		err = fmt.Errorf("%w: the peer closed the socket", proc.ErrJoin)
	}
	return n, err
}

// pass calls step until all of b is sent or received, and waits for the socket in between, whether
// it blocks or not.
func pass(fd int, b []byte, event int16, until time.Time, step func(int, []byte) (int, error)) error {
	for len(b) > 0 {
		switch n, err := step(fd, b); {
		case err == nil:
			b = b[n:]
			continue
		case errors.Is(err, proc.ErrJoin):
			return err
		case !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR):
			return fmt.Errorf("%w: %w", proc.ErrJoin, err)
		}
		left := time.Until(until)
		if left <= 0 {
			return fmt.Errorf("%w: the peer sent too little within %v", proc.ErrJoin, joinLimit)
		}
		fds := []unix.PollFd{{Fd: int32(fd), Events: event}}
		if _, err := unix.Poll(fds, int(left/time.Millisecond)+1); err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("%w: %w", proc.ErrJoin, err)
		}
	}
	return nil
}
