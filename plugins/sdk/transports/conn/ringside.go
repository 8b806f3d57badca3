package conn

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/support/ring"
)

// piece is the most that one Write takes: after each piece the writer of the ring has room
// again.
const piece = 64 << 10

// ringSide passes bytes without a copy: the connection writes from the ring's memory and
// reads into it. It sleeps on the ring's socket in Go's network poller.
type ringSide struct {
	l    *ring.Link
	bell *os.File // a duplicate of the ring's socket
	raw  syscall.RawConn
}

// NearRing makes a Near of side 0 of a region with rings of size bytes, a power of two. The
// user makes the link of side 1 from the two descriptors, the region's and the socket's,
// which the caller owns.
func NearRing(size int) (near Near, region, sock int, err error) {
	mine, region, pair, err := newRing(size)
	if err != nil {
		return nil, -1, -1, err
	}
	s, err := newRingSide(mine, pair[0])
	if err != nil {
		return nil, -1, -1, errors.Join(err, unix.Close(region), unix.Close(pair[1]))
	}
	return s, region, pair[1], nil
}

// newRing makes a region, of which there are two descriptors, and the sockets beside it.
func newRing(size int) (mine, theirs int, pair [2]int, err error) {
	if mine, err = ring.Create(size); err != nil {
		return -1, -1, pair, err
	}
	theirs, err = unix.FcntlInt(uintptr(mine), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return -1, -1, pair, errors.Join(fmt.Errorf("duplicate the descriptor of a ring: %w", err), unix.Close(mine))
	}
	pair, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, -1, pair, errors.Join(fmt.Errorf("socket pair: %w", err), unix.Close(theirs), unix.Close(mine))
	}
	return mine, theirs, pair, nil
}

// newRingSide owns both descriptors, even after an error.
func newRingSide(region, sock int) (*ringSide, error) {
	bell, err := unix.FcntlInt(uintptr(sock), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("duplicate the socket of a ring: %w", err), unix.Close(region), unix.Close(sock))
	}
	s := &ringSide{bell: os.NewFile(uintptr(bell), "ring")} // non-blocking, so Go's poller handles it
	if s.l, err = ring.New(region, sock, 0); err == nil {
		if s.raw, err = s.bell.SyscallConn(); err != nil {
			s.l.Break()
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.bell.Close())
	}
	return s, nil
}

// Outward writes to w what comes into the ring, until the other side ends its stream.
func (s *ringSide) Outward(w io.Writer) error {
	for {
		first, _, err := s.l.Bytes()
		switch {
		case err == io.EOF: //nolint:errorlint // a link reports it bare
			return nil
		case err != nil:
			return err
		case len(first) == 0:
			if err := s.sleep(s.raw.Read, link.Readable); err != nil {
				return err
			}
			continue
		}
		n, err := w.Write(first[:min(len(first), piece)])
		s.l.Discard(n)
		if err != nil {
			return err
		}
	}
}

// Inward reads from r into the ring.
func (s *ringSide) Inward(r io.Reader) error {
	for {
		room, _, err := s.l.Space()
		switch {
		case errors.Is(err, ring.ErrRegion):
			return err
		case err != nil:
			return fmt.Errorf("%w: %w", ErrGone, err)
		case len(room) == 0:
			if !s.l.Alive() {
				return ErrGone
			}
			if err := s.sleep(s.raw.Write, link.Writable); err != nil {
				return err
			}
			continue
		}
		n, err := r.Read(room)
		s.l.Fill(n)
		switch {
		case err == io.EOF: //nolint:errorlint // net.Conn reports it bare
			return nil
		case err != nil:
			return err
		}
	}
}

// sleep waits until the ring may have become want. wait is the raw connection's read or
// write function. Arm is called after that has forgotten earlier events, so that no
// doorbell is missed.
func (s *ringSide) sleep(wait func(func(uintptr) bool) error, want link.Interest) error {
	slept := false
	return wait(func(uintptr) bool {
		if slept || s.l.Arm(want) {
			return true
		}
		slept = true
		return false
	})
}

func (s *ringSide) CloseWrite() error { return s.l.CloseSend() }
func (s *ringSide) Gone() error       { return s.raw.Read(func(uintptr) bool { return !s.l.Alive() }) }
func (s *ringSide) Alive() bool       { return s.l.Alive() }

func (s *ringSide) Break() {
	s.l.Break()
	_ = s.bell.Close() // wakes a goroutine that sleeps on it
}

func (s *ringSide) Close() error { return errors.Join(s.l.Close(), s.bell.Close()) }
