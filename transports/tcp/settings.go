package tcp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/identity"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
	"github.com/openimpi/impi/plugins/sdk/transports/stripe"
)

var schema = append([]transports.Setting{
	{Name: "nodelay", Type: transports.TypeBool, Default: true, Doc: "send small packets at once (TCP_NODELAY)"},
	{Name: "send_buffer", Type: transports.TypeNumber, Default: 0.0, Doc: "bytes of the kernel's send buffer; 0 lets the kernel adapt it"},
	{Name: "receive_buffer", Type: transports.TypeNumber, Default: 0.0, Doc: "bytes of the kernel's receive buffer; 0 lets the kernel adapt it"},
	socket.SilenceSetting(),
	{Name: "bind", Type: transports.TypeString, Default: "", Doc: "IP address to listen on instead of the host's advertised one, for hosts behind address translation; 0.0.0.0 or :: for all"},
	{Name: "also", Type: transports.TypeStrings, Default: []string{}, Doc: "further IP addresses of the host, of either family, at which it listens too and which peers may try"},
	{Name: "port_range", Type: transports.TypeString, Default: "", Doc: `ports to listen on, as "first-last", when no port is given; for firewalls`},
	{Name: "congestion", Type: transports.TypeString, Default: autoCongestion, Doc: `congestion control, as the kernel names it; "auto" is the system's, but reno inside one machine, where pacing halves the bandwidth`},
	{Name: "streams", Type: transports.TypeNumber, Default: defaultStreams, Doc: "most TCP connections that carry the bytes of a link made to this site from 5 ms away or more, up to 32; such a link begins with one and gets the others once it has carried 256 KiB; its bytes pass through the plugin unless this is 1"},
	{Name: "tls", Type: transports.TypeBool, Default: false, Doc: "TLS 1.3 with certificates on both sides, which cert, key and ca name"},
}, identity.Settings(false)...)

// defaultStreams fill 1 Gb/s over 100 ms with the kernel's usual send buffers; over 200 ms they do
// not (docs/wide-area.md).
const defaultStreams = 8.0

// maxAlso bounds the setting also: peers try a bounded number of addresses.
const maxAlso = maxAddresses - 1

// settings are the values of one Configure; they are immutable.
type settings struct {
	nodelay             bool
	send, receive       int
	silence             time.Duration // 0: no limit
	congestion          string
	bind                netip.Addr
	also                []netip.Addr
	firstPort, lastPort uint16
	streams             int                // most connections of a link that is dialled to our listeners
	near                time.Duration      // the constant near; tests set it
	id                  *identity.Identity // nil: no TLS
}

// Schema lists the settings.
func (t *Transport) Schema() []transports.Setting {
	return append([]transports.Setting(nil), schema...)
}

// Configure sets the settings of links and listeners that are made after it.
func (t *Transport) Configure(given map[string]any) error {
	s := &settings{near: near}
	var errs [9]error
	s.nodelay = value(given, "nodelay", true)
	s.send, errs[0] = socket.Whole(given, named("send_buffer"), 0, socket.MaxBuffer)
	s.receive, errs[1] = socket.Whole(given, named("receive_buffer"), 0, socket.MaxBuffer)
	s.silence, errs[2] = socket.Silence(given)
	s.bind, errs[3] = socket.Bind(given, named("bind"))
	s.also, errs[4] = addresses(value(given, "also", []string(nil)))
	s.firstPort, s.lastPort, errs[5] = socket.PortRange(given, named("port_range"))
	s.congestion, errs[6] = congestionControl(given)
	s.streams, errs[7] = socket.Whole(given, named("streams"), 1, stripe.MaxConnections)
	if value(given, "tls", false) {
		s.id, errs[8] = identity.Load(given)
	}
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	t.settings.Store(s)
	return nil
}

func named(name string) transports.Setting {
	for _, s := range schema {
		if s.Name == name {
			return s
		}
	}
	panic("tcp: no setting " + name)
}

// addresses reads the setting also.
func addresses(texts []string) ([]netip.Addr, error) {
	if len(texts) > maxAlso {
		return nil, &transports.SettingError{
			Name: "also", Problem: fmt.Sprintf("%d addresses are too many", len(texts)), Remedy: fmt.Sprintf("give at most %d", maxAlso)}
	}
	list := make([]netip.Addr, len(texts))
	for i, text := range texts {
		a, err := netip.ParseAddr(text)
		if err != nil || a.IsUnspecified() {
			return nil, &transports.SettingError{
				Name: "also", Problem: fmt.Sprintf("%q is not an address that peers can dial", text), Remedy: "write numeric ones like 2001:db8::7"}
		}
		list[i] = a
	}
	return list, nil
}

func value[T any](given map[string]any, name string, absent T) T {
	if v, ok := given[name].(T); ok {
		return v
	}
	return absent
}

// control prepares a socket before it listens or connects, because the window that the two
// kernels agree on depends on the buffers at that time. An accepted socket inherits its
// listener's.
func (s *settings) control(_, _ string, c syscall.RawConn) (err error) {
	if cerr := c.Control(func(fd uintptr) { err = socket.SetBuffers(int(fd), s.send, s.receive) }); cerr != nil {
		return cerr
	}
	return err
}

// controlBound does the same for a socket that dials from a given address. It also makes
// the kernel choose the port when it knows the peer's address: otherwise all connections
// from one address share one range of ports.
func (s *settings) controlBound(network, address string, c syscall.RawConn) error {
	// Kernels without the option choose the port early, which works too.
	_ = c.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1) })
	return s.control(network, address, c)
}

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

func (s *settings) tuneConn(c *net.TCPConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	cerr := raw.Control(func(fd uintptr) { err = s.tune(int(fd)) })
	return errors.Join(cerr, err)
}

func (s *settings) tune(fd int) error {
	if err := s.setCongestion(fd); err != nil {
		return err
	}
	type option struct{ level, name, value int }
	options := []option{{unix.SOL_TCP, unix.TCP_NODELAY, 0}}
	if s.nodelay {
		options[0].value = 1
	}
	for _, o := range options {
		if err := unix.SetsockoptInt(fd, o.level, o.name, o.value); err != nil {
			return fmt.Errorf("set option %d/%d of a TCP socket to %d: %w", o.level, o.name, o.value, err)
		}
	}
	return socket.SetSilence(fd, s.silence)
}
