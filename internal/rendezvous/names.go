package rendezvous

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/unproved"
	"github.com/openimpi/impi/internal/names"
)

// wish is what somebody wants who has connected.
type wish uint8

const (
	wishUnknown wish = iota
	wishStartup
	wishNames
	wishOurs // a client of ours: with TLS, and maybe one that was here before
	wishDone // nothing any more
)

// muteLimit is how long one may take to say what one wants.
const muteLimit = 10 * time.Second

// sorted reports whether a new connection is not, or not yet, one for startup. Until all
// clients have come every one is: nobody has names before. After that the first byte
// decides.
func (s *server) sorted(e event) bool {
	if !s.full {
		return false
	}
	if e.want == wishUnknown {
		if out, evicted := s.mute.Enter(e.nc, unproved.FromAddr(e.nc.RemoteAddr())); evicted {
			out.Close()
		}
		s.wg.Go(func() {
			_ = e.nc.SetReadDeadline(time.Now().Add(muteLimit)) // a connection that is over says so when it is read
			e.want = wishOf(e.nc)
			_ = e.nc.SetReadDeadline(time.Time{})
			if e.want == wishOurs {
				if e.above = s.returning(e.nc); e.above == nil {
					e.want = wishDone
				}
			}
			select {
			case s.events <- e:
			case <-s.stop:
				e.nc.Close()
			}
		})
		return true
	}
	s.mute.Leave(e.nc)
	if e.want == wishNames && s.names != nil {
		s.wg.Go(func() { s.names.Handle(e.nc) })
		return true
	}
	return e.want == wishDone
}

// wishOf looks at the first byte without taking it. Who says nothing is one for
// startup, which refuses it and says why.
func wishOf(nc net.Conn) wish {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return wishStartup
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return wishStartup
	}
	var b [1]byte
	n := 0
	err = raw.Read(func(fd uintptr) bool {
		for {
			var perr error
			n, _, perr = unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK)
			if perr != unix.EINTR {
				return perr != unix.EAGAIN
			}
		}
	})
	switch {
	case err != nil || n != 1:
	case b[0] == names.FirstByte:
		return wishNames
	case b[0] == prefaceByte:
		return wishOurs
	}
	return wishStartup
}

// endNames ends what has to do with names.
func (s *server) endNames() {
	for _, nc := range s.mute.All() {
		nc.Close()
	}
	if s.names != nil {
		s.names.Close()
	}
}
