package rendezvous

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/support/unproved"
)

// purpose is what a connection is for, as its first byte shows.
type purpose uint8

const (
	purposeUnknown purpose = iota
	purposeStartup
	purposeNames
	purposeOwn  // a client of ours: with TLS, and perhaps resuming a session
	purposeDone // dealt with already
)

// namesByte is the first byte of a client of the name service: that of a TLS record. No site begins
// startup with it, so that one port serves both.
const namesByte = 0x16

// purposeLimit is how long a client may take to send its first byte.
const purposeLimit = 10 * time.Second

// sorted handles a connection that is not, or not yet, one of startup, and reports whether it is
// one of startup. Until all clients have come every connection is for startup, since no names are
// served before. After that the first byte decides.
func (s *server) sorted(e event) bool {
	if !s.full {
		return false
	}
	if e.want == purposeUnknown {
		if out, evicted := s.undecided.Enter(e.nc, unproved.FromAddr(e.nc.RemoteAddr())); evicted {
			out.Close()
		}
		s.wg.Go(func() {
			_ = e.nc.SetReadDeadline(time.Now().Add(purposeLimit)) // if this fails the read below does, too
			e.want = purposeOf(e.nc)
			_ = e.nc.SetReadDeadline(time.Time{})
			if e.want == purposeOwn {
				if e.above = s.returning(e.nc); e.above == nil {
					e.want = purposeDone
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
	s.undecided.Leave(e.nc)
	if e.want == purposeNames && s.names != nil {
		s.wg.Go(func() { s.names.Handle(e.nc) })
		return true
	}
	return e.want == purposeDone
}

// purposeOf reads the first byte without consuming it. Connections on which nothing was
// sent are treated as those of startup, which refuses them with the reason.
func purposeOf(nc net.Conn) purpose {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return purposeStartup
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return purposeStartup
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
	case b[0] == namesByte:
		return purposeNames
	case b[0] == prefaceByte:
		return purposeOwn
	}
	return purposeStartup
}

func (s *server) endNames() {
	for _, nc := range s.undecided.All() {
		nc.Close()
	}
	if s.names != nil {
		s.names.Close()
	}
}
