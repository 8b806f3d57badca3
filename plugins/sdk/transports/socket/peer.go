package socket

import (
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

func describe(fd int, far unix.Sockaddr) string {
	switch a := far.(type) {
	case *unix.SockaddrInet4:
		return "tcp " + netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port)).String()
	case *unix.SockaddrInet6:
		return "tcp " + netip.AddrPortFrom(netip.AddrFrom16(a.Addr), uint16(a.Port)).String()
	case *unix.SockaddrUnix:
		if a.Name != "" && a.Name != "@" { // x/sys returns "@" if there is no name
			return "unix " + a.Name
		}
		if c, err := Credentials(fd); err == nil {
			return fmt.Sprintf("unix process %d", c.Pid)
		}
		return "unix socket"
	}
	return fmt.Sprintf("%T", far)
}

// Credentials returns the process that has opened the other end of a Unix socket, by
// dialling, listening or making the pair.
func Credentials(fd int) (*unix.Ucred, error) {
	c, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return nil, fmt.Errorf("descriptor %d: who is the peer: %w", fd, err)
	}
	return c, nil
}
