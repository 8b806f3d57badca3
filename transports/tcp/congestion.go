package tcp

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/transports"
)

const (
	autoCongestion = "auto"
	// nearCongestion is for connections inside one machine. They have no congestion, and an
	// algorithm that paces its packets, as BBR does, halves the bandwidth;
	// docs/decisions/0010-reno-inside-one-machine.md has the figures. Every kernel has
	// reno.
	nearCongestion = "reno"
)

// congestionControl reads the setting and checks that the kernel has the algorithm, so that
// an error is reported with the config and not with the first connection.
func congestionControl(given map[string]any) (string, error) {
	name := value(given, "congestion", autoCongestion)
	if name == autoCongestion {
		return name, nil
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", fmt.Errorf("ask for the congestion control %q: %w", name, err)
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name); err != nil {
		return "", &transports.SettingError{
			Name:    "congestion",
			Problem: fmt.Sprintf("the kernel refuses %q: %v", name, err),
			Remedy:  `write "auto", or a name from /proc/sys/net/ipv4/tcp_allowed_congestion_control`,
		}
	}
	return name, nil
}

func (s *settings) setCongestion(fd int) error {
	name := s.congestion
	if name == autoCongestion || name == "" {
		if !insideMachine(fd) {
			return nil // keep the system's default
		}
		name = nearCongestion
	}
	if err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("set the congestion control %q: %w", name, err)
	}
	return nil
}

func insideMachine(fd int) bool {
	near, nearErr := unix.Getsockname(fd)
	far, farErr := unix.Getpeername(fd)
	if nearErr != nil || farErr != nil {
		return false
	}
	a, b := ipOf(near), ipOf(far)
	return a.IsLoopback() && b.IsLoopback() || a.IsValid() && a == b
}

func ipOf(sa unix.Sockaddr) netip.Addr {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrFrom4(sa.Addr)
	case *unix.SockaddrInet6:
		return netip.AddrFrom16(sa.Addr).Unmap()
	}
	return netip.Addr{}
}
