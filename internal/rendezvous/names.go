package rendezvous

import (
	"net"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/internal/names"
)

// wish is what somebody wants who has connected.
type wish uint8

const (
	wishUnknown wish = iota
	wishStartup
	wishNames
)

const (
	muteLimit = 10 * time.Second // to say what one wants
	maxMute   = 64               // who have not said so; the first ones make room
)

// sorted tells whether a new connection is not, or not yet, one for startup. Until all
// clients have come every one is: nobody has names before. After that the first byte
// decides.
func (s *server) sorted(e event) bool {
	if s.names == nil || !s.full {
		return false
	}
	if e.want == wishUnknown {
		if len(s.mute) >= maxMute {
			s.mute[0].Close()
		}
		s.mute = append(s.mute, e.nc)
		s.wg.Go(func() {
			e.want = wishOf(e.nc)
			select {
			case s.events <- e:
			case <-s.stop:
				e.nc.Close()
			}
		})
		return true
	}
	s.mute = slices.DeleteFunc(s.mute, func(nc net.Conn) bool { return nc == e.nc })
	if e.want == wishNames {
		s.wg.Go(func() { s.names.Handle(e.nc) })
	}
	return e.want == wishNames
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
	_ = nc.SetReadDeadline(time.Now().Add(muteLimit)) // a connection that is over says so when it is read
	defer func() { _ = nc.SetReadDeadline(time.Time{}) }()
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
	if err == nil && n == 1 && b[0] == names.FirstByte {
		return wishNames
	}
	return wishStartup
}

// endNames ends what has to do with names.
func (s *server) endNames() {
	for _, nc := range s.mute {
		nc.Close()
	}
	if s.names != nil {
		s.names.Close()
	}
}
