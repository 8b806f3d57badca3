package socket

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/transports"
)

// MaxBuffer bounds the buffer settings. The kernel silently reduces them to its own lower
// limits (net.core.wmem_max and rmem_max).
const MaxBuffer = 1 << 30

// Whole returns the value of a setting that must be a whole number between low and high. An
// absent setting has its default.
func Whole(settings map[string]any, of transports.Setting, low, high int) (int, error) {
	v, ok := settings[of.Name]
	if !ok {
		v = of.Default
	}
	f, ok := v.(float64)
	if !ok || f != math.Trunc(f) || f < float64(low) || f > float64(high) {
		return 0, &transports.SettingError{
			Name:    of.Name,
			Problem: fmt.Sprintf("%v is not possible", v),
			Remedy:  fmt.Sprintf("write a whole number from %d to %d", low, high),
		}
	}
	return int(f), nil
}

// SetBuffers sets a socket's buffers, in bytes; 0 leaves one to the kernel.
func SetBuffers(fd, send, receive int) error {
	if send > 0 {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, send); err != nil {
			return fmt.Errorf("set the send buffer to %d bytes: %w", send, err)
		}
	}
	if receive > 0 {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, receive); err != nil {
			return fmt.Errorf("set the receive buffer to %d bytes: %w", receive, err)
		}
	}
	return nil
}

// Bind returns the value of a setting that is an IP address; absent or empty it is the zero
// Addr.
func Bind(settings map[string]any, of transports.Setting) (netip.Addr, error) {
	text, _ := settings[of.Name].(string)
	if text == "" {
		return netip.Addr{}, nil
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		return a, &transports.SettingError{
			Name: of.Name, Problem: fmt.Sprintf("%q is not an IP address", text), Remedy: "write one like 192.0.2.7, or 0.0.0.0 for all"}
	}
	return a, nil
}

// RangeInUse is the reason why a listener found no free port in a range.
const RangeInUse = "all ports of port_range are in use; widen it, or end the programs that have them"

// PortRange returns the value of a setting that is a range of ports, "first-last"; absent
// or empty it is 0, 0.
func PortRange(settings map[string]any, of transports.Setting) (first, last uint16, err error) {
	text, _ := settings[of.Name].(string)
	if text == "" {
		return 0, 0, nil
	}
	low, high, _ := strings.Cut(text, "-")
	a, errA := strconv.ParseUint(strings.TrimSpace(low), 10, 16)
	b, errB := strconv.ParseUint(strings.TrimSpace(high), 10, 16)
	if cmp.Or(errA, errB) != nil || a == 0 || a > b {
		return 0, 0, &transports.SettingError{
			Name: of.Name, Problem: fmt.Sprintf("%q is not a range of ports", text), Remedy: `write it like "7800-7899"`}
	}
	return uint16(a), uint16(b), nil
}
