package conn

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/transports"
	"github.com/openimpi/impi/transports/ring"
)

// piece is the most that one Write takes: the ring's writer gets room again after
// each.
const piece = 64 << 10

// Pump passes bytes between a side of a ring and a connection, both ways, in place:
// the connection writes out of the ring's memory and reads into it. It sleeps when
// there is nothing to do, in Go's network poller, and never spins: of two processes
// that share cores the one that spins delays the other.
type Pump struct {
	near *ring.Link
	far  transports.Conn
	bell *os.File // a duplicate of near's socket, to sleep on
	raw  syscall.RawConn

	left  atomic.Bool // near's other side has closed, and got its last bytes out
	once  sync.Once
	cause atomic.Pointer[error]
}

// NewPump makes a pump, which owns both ends from here on, also after an error.
func NewPump(near *ring.Link, far transports.Conn) (*Pump, error) {
	p := &Pump{near: near, far: far}
	err := p.listen()
	if err != nil {
		near.Break()
		Break(far)
		return nil, err
	}
	return p, nil
}

func (p *Pump) listen() error {
	fd, err := unix.FcntlInt(uintptr(p.near.Handle()), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("duplicate the descriptor of a ring: %w", err)
	}
	p.bell = os.NewFile(uintptr(fd), "ring") // it does not block, so Go polls it
	if p.raw, err = p.bell.SyscallConn(); err != nil {
		return errors.Join(fmt.Errorf("wait for a ring: %w", err), p.bell.Close())
	}
	return nil
}

// Run passes bytes until the ring's other side has closed, or something failed. Then
// both ends are closed. The error says what failed; both peers see their links
// broken.
func (p *Pump) Run() error {
	var wg sync.WaitGroup
	wg.Go(func() { p.end(p.outward()) })
	p.end(p.inward())
	wg.Wait()
	if p.Err() == nil {
		p.finish(func() { _, _ = p.near.Close(), p.far.Close() })
	}
	return p.Err()
}

// Err is what has ended the pump early, or nil. It is known before either peer can
// see the consequences.
func (p *Pump) Err() error {
	if e := p.cause.Load(); e != nil {
		return *e
	}
	return nil
}

// Left tells whether nobody is at the ring's other end any more. What is under way
// to the connection may still be.
func (p *Pump) Left() bool { return p.left.Load() || !p.near.Alive() }

// errEnded is why a pump that is told to end breaks its peers.
var errEnded = errors.New("its process ends")

// Close ends the pump at once. Bytes under way are lost, and both peers see that.
func (p *Pump) Close() { p.end(errEnded) }

// end takes the result of one direction. A failure ends the other one too.
func (p *Pump) end(err error) {
	if err == nil {
		return
	}
	p.cause.CompareAndSwap(nil, &err)
	p.finish(func() {
		p.near.Break()
		Break(p.far)
	})
}

func (p *Pump) finish(closing func()) {
	p.once.Do(func() {
		closing()
		_ = p.bell.Close() // wakes who sleeps on it
	})
}

// outward passes on what comes out of the ring, and waits at its end until the
// other side has gone.
func (p *Pump) outward() error {
	for {
		first, _, err := p.near.Bytes()
		switch {
		case err == io.EOF: //nolint:errorlint // a link reports it bare
			return p.outwardEnd()
		case err != nil:
			return fmt.Errorf("from the ring: %w", err)
		case len(first) == 0:
			if err := p.sleep(p.raw.Read, link.Readable); err != nil {
				return err
			}
			continue
		}
		n, err := p.far.Write(first[:min(len(first), piece)])
		p.near.Skip(n)
		if err != nil {
			return fmt.Errorf("to the connection: %w", err)
		}
	}
}

func (p *Pump) outwardEnd() error {
	if err := p.far.CloseWrite(); err != nil && p.near.Alive() {
		return fmt.Errorf("to the connection: %w", err)
	}
	gone := func(uintptr) bool { return !p.near.Alive() }
	if err := p.raw.Read(gone); err != nil {
		return nil //nolint:nilerr // the other direction has failed, and closed the bell
	}
	p.left.Store(true)
	if err := p.far.SetReadDeadline(time.Now()); err != nil {
		_ = p.far.Close() // which ends the read too
	}
	return nil
}

// inward passes on what comes from the connection.
func (p *Pump) inward() error {
	for {
		room, _, err := p.near.Space()
		switch {
		case p.left.Load():
			return nil
		case err != nil:
			return fmt.Errorf("to the ring: %w", err)
		case len(room) == 0:
			if !p.near.Alive() {
				return fmt.Errorf("to the ring: %w: the other side has died", link.ErrBroken)
			}
			if err := p.sleep(p.raw.Write, link.Writable); err != nil {
				return err
			}
			continue
		}
		n, err := p.far.Read(room)
		p.near.Fill(n)
		switch {
		case p.left.Load():
			return nil
		case err == io.EOF: //nolint:errorlint // net.Conn reports it bare
			return p.near.CloseSend()
		case err != nil:
			return fmt.Errorf("from the connection: %w", err)
		}
	}
}

// sleep waits until the ring may have become want. wait is the half of raw that
// fits.
func (p *Pump) sleep(wait func(func(uintptr) bool) error, want link.Interest) error {
	slept := false
	err := wait(func(uintptr) bool {
		if slept || p.near.Arm(want) {
			return true
		}
		slept = true
		return false
	})
	if err != nil {
		return fmt.Errorf("wait for the ring: %w", err)
	}
	return nil
}
