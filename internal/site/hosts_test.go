package site

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/listen"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

// refusing is a transport whose Listen fails at the first ports, in the way of fail.
type refusing struct {
	transports.Transport
	fail  func(port int) error
	tried int
}

func (*refusing) Capabilities() transports.Capabilities {
	return transports.Capabilities{Reach: transports.ReachNetwork}
}

func (r *refusing) Listen(_ context.Context, at transports.ListenSpec) (transports.Listener, error) {
	r.tried++
	return nil, r.fail(at.Port)
}

// hold returns ports of a loopback address that this test has, by TCP or by UDP, one after the
// other; the one after them is free.
func hold(t *testing.T, host string, udp bool) (first uint16) {
	t.Helper()
	at := netip.MustParseAddr(host)
	one := func(port uint16) error {
		if udp {
			c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(at, port)))
			if err == nil {
				t.Cleanup(func() { c.Close() })
			}
			return err
		}
		c, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(at, port)))
		if err == nil {
			t.Cleanup(func() { c.Close() })
		}
		return err
	}
	for first = 24000; first < 30000; first += 3 {
		if one(first) == nil && one(first+1) == nil && free(first+2) {
			return first
		}
	}
	t.Fatal("no port is free")
	return 0
}

// free reports whether nobody has a port, by TCP or by UDP, at any address.
func free(port uint16) bool {
	any4 := netip.AddrPortFrom(netip.IPv4Unspecified(), port)
	c, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(any4))
	if err != nil {
		return false
	}
	defer c.Close()
	ln, err := net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(any4))
	if err != nil {
		return false
	}
	return ln.Close() == nil
}

// TestOnlyPortsInUseAreSkipped: of a range the next port is tried if the one before is in use, and for
// no other reason, which is what the error says then.
func TestOnlyPortsInUseAreSkipped(t *testing.T) {
	const host = "127.4.5.6"
	mute := func(reason string) func(int) error { // as a plugin's errors are, which has no cause
		return func(int) error {
			return &transports.Error{Transport: "fast", Op: "listen", Code: transports.CodeResource, Reason: reason}
		}
	}
	caused := func(errno syscall.Errno) func(int) error {
		return func(int) error { return socket.Failure("tcp", "listen", host, errno) }
	}
	for name, c := range map[string]struct {
		fail  func(port int) error
		udp   bool
		tried int
		inUse bool
		says  string
	}{
		"in use":                   {caused(syscall.EADDRINUSE), false, 3, true, "widen it"},
		"not permitted":            {caused(syscall.EACCES), false, 1, false, "check the port number"},
		"too many descriptors":     {caused(syscall.EMFILE), false, 1, false, "ulimit -n"},
		"out of memory":            {caused(syscall.ENOMEM), false, 1, false, "out of memory"},
		"a plugin, TCP in use":     {mute("the system has refused it"), false, 3, false, "the system has refused it"}, // the third port is free
		"a plugin, UDP in use":     {mute("the system has refused it"), true, 3, false, "the system has refused it"},
		"no error of a transport":  {func(int) error { return errors.New("broken") }, false, 1, false, "broken"},
		"no address for a machine": {caused(syscall.EADDRNOTAVAIL), false, 1, false, "does not have the address"},
	} {
		t.Run(name, func(t *testing.T) {
			first := hold(t, host, c.udp)
			r := &refusing{fail: c.fail}
			s := &Site{Routes: &routes.Table{Site: &config.Site{Ports: config.Ports{First: first, Last: first + 2}}}}
			_, err := s.open(t.Context(), &routes.Transport{Transport: r, Name: "x"}, r, transports.ListenSpec{Host: host})
			if err == nil || r.tried != c.tried || errors.Is(err, listen.ErrInUse) != c.inUse || !strings.Contains(err.Error(), c.says) {
				t.Errorf("after %d ports: %v", r.tried, err)
			}
		})
	}
}

// TestPortOfTheFile: a named port is told as taken if something has it, at the host's address, and
// not if the system refuses it for another reason.
func TestPortOfTheFile(t *testing.T) {
	const host = "127.4.5.7"
	port := hold(t, host, false)
	mute := &transports.Error{Code: transports.CodeResource, Reason: "refused"}
	for name, c := range map[string]struct {
		err   error
		host  string
		bind  string
		port  uint16
		taken bool
	}{
		"in use":                  {socket.Failure("tcp", "listen", host, syscall.EADDRINUSE), host, "", port, true},
		"not permitted":           {socket.Failure("tcp", "listen", host, syscall.EACCES), host, "", port, false},
		"too many descriptors":    {socket.Failure("tcp", "listen", host, syscall.EMFILE), host, "", port, false},
		"a plugin":                {mute, host, "", port, true},
		"a plugin, a free port":   {mute, host, "", port + 2, false},
		"a plugin, other address": {mute, "127.4.5.8", "", port, false},
		"a plugin, bound":         {mute, "127.4.5.8", host, port, true},
		"a plugin, far address":   {mute, "203.0.113.9", "", port, true}, // one of a translation
		"a plugin, far, free":     {mute, "203.0.113.9", "", port + 2, false},
		"any port":                {mute, host, "", 0, false},
		"another code":            {&transports.Error{Code: transports.CodeAddress}, host, "", port, false},
	} {
		of := &Site{Routes: &routes.Table{Site: &config.Site{Transports: []config.Transport{{Name: "tcp", Settings: []config.Setting{{Name: "bind", Value: c.bind}}}}}, Channels: &routes.Transport{Name: "tcp"}}}
		err := of.portError(t.Context(), c.err, config.Host{Address: netip.MustParseAddr(c.host), Port: c.port})
		if errors.Is(err, ErrPortTaken) != c.taken || !errors.Is(err, c.err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
