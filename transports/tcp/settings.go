package tcp

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/transports"
	"github.com/openimpi/impi/transports/socket"
)

var schema = []transports.Setting{
	{Name: "nodelay", Type: transports.TypeBool, Default: true, Doc: "send small packets at once (TCP_NODELAY)"},
	{Name: "send_buffer", Type: transports.TypeNumber, Default: 0.0, Doc: "bytes of the kernel's send buffer; 0 lets the kernel adapt it"},
	{Name: "receive_buffer", Type: transports.TypeNumber, Default: 0.0, Doc: "bytes of the kernel's receive buffer; 0 lets the kernel adapt it"},
	{Name: "keepalive", Type: transports.TypeNumber, Default: 30.0, Doc: "seconds of silence after which the peer is asked whether it lives; a dead one is noticed after twice the time; 0 never asks"},
	{Name: "bind", Type: transports.TypeString, Default: "", Doc: "IP address to listen on instead of the host's advertised one, for hosts behind address translation; 0.0.0.0 or :: for all"},
	{Name: "port_range", Type: transports.TypeString, Default: "", Doc: `ports to listen on, as "first-last", when no port is given; for firewalls`},
	{Name: "congestion", Type: transports.TypeString, Default: autoCongestion, Doc: `congestion control, as the kernel names it; "auto" is the system's, but reno inside one machine, where pacing halves the bandwidth`},
}

// settings are the values of one Configure; they never change.
type settings struct {
	nodelay             bool
	send, receive       int
	keepalive           int // seconds
	congestion          string
	bind                netip.Addr
	firstPort, lastPort uint16
}

// Schema lists the settings.
func (t *Transport) Schema() []transports.Setting {
	return append([]transports.Setting(nil), schema...)
}

// Configure takes settings for the links and listeners that are made from now on.
func (t *Transport) Configure(given map[string]any) error {
	s := &settings{}
	var errs [6]error
	s.nodelay = value(given, "nodelay", true)
	s.send, errs[0] = socket.Whole(given, schema[1], 0, socket.MaxBuffer)
	s.receive, errs[1] = socket.Whole(given, schema[2], 0, socket.MaxBuffer)
	s.keepalive, errs[2] = socket.Whole(given, schema[3], 0, 32767)
	if text := value(given, "bind", ""); text != "" {
		s.bind, errs[3] = netip.ParseAddr(text)
		if errs[3] != nil {
			errs[3] = &transports.SettingError{
				Name: "bind", Problem: fmt.Sprintf("%q is not an IP address", text), Remedy: "write one like 192.0.2.7, or 0.0.0.0 for all"}
		}
	}
	s.firstPort, s.lastPort, errs[4] = portRange(value(given, "port_range", ""))
	s.congestion, errs[5] = congestionControl(given)
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	t.settings.Store(s)
	return nil
}

// value is a setting, or what stands for an absent one.
func value[T any](given map[string]any, name string, absent T) T {
	if v, ok := given[name].(T); ok {
		return v
	}
	return absent
}

// portRange reads "first-last"; an empty text is no range: 0, 0.
func portRange(text string) (first, last uint16, err error) {
	if text == "" {
		return 0, 0, nil
	}
	low, high, _ := strings.Cut(text, "-")
	a, errA := strconv.ParseUint(strings.TrimSpace(low), 10, 16)
	b, errB := strconv.ParseUint(strings.TrimSpace(high), 10, 16)
	if cmp.Or(errA, errB) != nil || a == 0 || a > b {
		return 0, 0, &transports.SettingError{
			Name: "port_range", Problem: fmt.Sprintf("%q is not a range of ports", text), Remedy: `write it like "7800-7899"`}
	}
	return uint16(a), uint16(b), nil
}

// control prepares a socket before it listens or connects: the window that the
// two kernels agree on depends on the buffers at that time. What an accepted
// socket has, it inherits from its listener.
func (s *settings) control(_, _ string, c syscall.RawConn) (err error) {
	if cerr := c.Control(func(fd uintptr) { err = socket.SetBuffers(int(fd), s.send, s.receive) }); cerr != nil {
		return cerr
	}
	return err
}

// controlBound does the same for a socket that dials from a given address, and
// lets the kernel choose the port when it knows the peer's: otherwise all
// connections from one address share one range of ports.
func (s *settings) controlBound(network, address string, c syscall.RawConn) error {
	// Kernels without the option choose the port early, which works as well.
	_ = c.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1) })
	return s.control(network, address, c)
}

// link makes a link of a connection.
func (s *settings) link(conn socket.Conn) (*socket.Link, error) {
	l, err := socket.FromConn(conn)
	if err != nil {
		return nil, err
	}
	if err := s.tune(l.Handle()); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// tune sets what is set on a connected socket.
func (s *settings) tune(fd int) error {
	if err := s.setCongestion(fd); err != nil {
		return err
	}
	type option struct{ level, name, value int }
	options := []option{{unix.SOL_TCP, unix.TCP_NODELAY, 0}}
	if s.nodelay {
		options[0].value = 1
	}
	if s.keepalive > 0 {
		// Silence, then three questions in the same time again.
		options = append(options,
			option{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
			option{unix.SOL_TCP, unix.TCP_KEEPIDLE, s.keepalive},
			option{unix.SOL_TCP, unix.TCP_KEEPINTVL, max(1, s.keepalive/3)},
			option{unix.SOL_TCP, unix.TCP_KEEPCNT, 3})
	}
	for _, o := range options {
		if err := unix.SetsockoptInt(fd, o.level, o.name, o.value); err != nil {
			return fmt.Errorf("set option %d/%d of a TCP socket to %d: %w", o.level, o.name, o.value, err)
		}
	}
	return nil
}
