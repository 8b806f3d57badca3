package listen

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"testing"

	"github.com/openimpi/impi/config"
)

// TestFirst: ports are tried in their order until one is free, or fails for another reason; a port
// that is named is tried alone.
func TestFirst(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		in    config.Ports
		port  uint16
		taken int // how many are, from the first one on
		fails error
		tried []uint16
		want  error
	}{
		"the first":    {config.Ports{First: 7800, Last: 7809}, 0, 0, nil, []uint16{7800}, nil},
		"the third":    {config.Ports{First: 7800, Last: 7809}, 0, 2, nil, []uint16{7800, 7801, 7802}, nil},
		"none":         {config.Ports{First: 65534, Last: 65535}, 0, 9, nil, []uint16{65534, 65535}, ErrInUse},
		"broken":       {config.Ports{First: 7800, Last: 7809}, 0, 0, broken, []uint16{7800}, broken},
		"named":        {config.Ports{First: 7800, Last: 7809}, 9000, 0, nil, []uint16{9000}, nil},
		"named, taken": {config.Ports{First: 7800, Last: 7809}, 9000, 9, nil, []uint16{9000}, syscall.EADDRINUSE},
		"any":          {config.Ports{}, 0, 0, nil, []uint16{0}, nil},
	} {
		var tried []uint16
		err := First(c.in, c.port, func(port uint16) (bool, error) {
			if tried = append(tried, port); len(tried) <= c.taken {
				return true, syscall.EADDRINUSE
			}
			return false, c.fails
		})
		if !errors.Is(err, c.want) || !slices.Equal(tried, c.tried) {
			t.Errorf("%s: %v after %v", name, err, tried)
		}
	}
}

// TestTCP: a port of the range that somebody has is left out.
func TestTCP(t *testing.T) {
	here := netip.MustParseAddrPort("127.0.0.1:0")
	one, err := TCP(t.Context(), net.ListenConfig{}, here, config.Ports{})
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	at := one.Addr().(*net.TCPAddr).AddrPort().Port()
	in := config.Ports{First: at, Last: uint16(min(int(at)+50, 65535))}
	two, err := TCP(t.Context(), net.ListenConfig{}, here, in)
	if err != nil {
		t.Fatal(err)
	}
	defer two.Close()
	if got := two.Addr().(*net.TCPAddr).AddrPort().Port(); got <= in.First || got > in.Last {
		t.Errorf("it listens on %d, not in %v", got, in)
	}
	if _, err := TCP(t.Context(), net.ListenConfig{}, here, config.Ports{First: at, Last: at}); !errors.Is(err, ErrInUse) {
		t.Error(err)
	}
}

// TestOfOneFamily: at 0.0.0.0 nothing is heard by IPv6, and at [::] all is.
func TestOfOneFamily(t *testing.T) {
	for at, want := range map[string]bool{"0.0.0.0:0": false, "[::]:0": true} {
		ln, err := TCP(t.Context(), net.ListenConfig{}, netip.MustParseAddrPort(at), config.Ports{})
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		port := ln.Addr().(*net.TCPAddr).AddrPort().Port()
		c, err := net.Dial("tcp6", netip.AddrPortFrom(netip.IPv6Loopback(), port).String())
		if err == nil {
			c.Close()
		}
		if (err == nil) != want {
			t.Errorf("%s by IPv6: %v", at, err)
		}
		if c, err = net.Dial("tcp4", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port).String()); err != nil {
			t.Errorf("%s by IPv4: %v", at, err)
		} else {
			c.Close()
		}
	}
}
