package conn

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/transports/ring"
)

// piece is the most that one Write takes: who writes to the ring gets room again
// after each.
const piece = 64 << 10

// ringSide pumps in place: the connection writes out of the ring's memory and reads
// into it. It sleeps on the ring's socket in Go's network poller.
type ringSide struct {
	l    *ring.Link
	bell *os.File // a duplicate of the ring's socket
	raw  syscall.RawConn
}

// NearRing makes a Near of one side of a ring, which it owns, also after an error.
func NearRing(l *ring.Link) (Near, error) {
	s := &ringSide{l: l}
	fd, err := unix.FcntlInt(uintptr(l.Handle()), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		l.Break()
		return nil, fmt.Errorf("duplicate the socket of a ring: %w", err)
	}
	s.bell = os.NewFile(uintptr(fd), "ring") // it does not block, so Go polls it
	if s.raw, err = s.bell.SyscallConn(); err != nil {
		s.Break()
		return nil, fmt.Errorf("wait for a ring: %w", err)
	}
	return s, nil
}

// Outward passes on what is in the ring.
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
		s.l.Skip(n)
		if err != nil {
			return err
		}
	}
}

// Inward fills the ring.
func (s *ringSide) Inward(r io.Reader) error {
	for {
		room, _, err := s.l.Space()
		switch {
		case err != nil:
			return err
		case len(room) == 0:
			if !s.l.Alive() {
				return fmt.Errorf("%w: the other side of the ring has died", link.ErrBroken)
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

// sleep waits until the ring may have become want. wait is the half of raw that
// fits. Arm comes after raw has forgotten what was, so that no bell is missed.
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
	_ = s.bell.Close() // wakes who sleeps on it
}

func (s *ringSide) Close() error { return errors.Join(s.l.Close(), s.bell.Close()) }
