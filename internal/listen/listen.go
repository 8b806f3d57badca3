// Package listen opens TCP ports, where a job file bounds them one of its range.
package listen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"github.com/openimpi/impi/config"
)

// ErrInUse means that none of the ports of a range is free.
var ErrInUse = errors.New("all of them are in use: widen it, or end the programs that have them")

// TCP listens at an address. If its port is 0, TCP uses the first free port of the range, or any
// port if there is no range.
func TCP(ctx context.Context, lc net.ListenConfig, at netip.AddrPort, in config.Ports) (ln net.Listener, err error) {
	err = First(in, at.Port(), func(port uint16) (bool, error) {
		ln, err = At(ctx, lc, netip.AddrPortFrom(at.Addr(), port))
		return errors.Is(err, syscall.EADDRINUSE), err
	})
	return ln, err
}

// At listens at an address. Package net alone would listen on IPv6, too, at 0.0.0.0.
func At(ctx context.Context, lc net.ListenConfig, at netip.AddrPort) (net.Listener, error) {
	if at.Addr().Is4() {
		return lc.Listen(ctx, "tcp4", at.String())
	}
	return lc.Listen(ctx, "tcp", at.String())
}

// First calls open with port or, if port is 0 and there is a range, with the ports of the range in
// their order, until open does not report that the port is taken. It returns the last error of
// open.
func First(in config.Ports, port uint16, open func(port uint16) (taken bool, err error)) error {
	if port != 0 || in.IsZero() {
		_, err := open(port)
		return err
	}
	for p := int(in.First); ; p++ {
		taken, err := open(uint16(p))
		switch {
		case !taken:
			return err
		case p >= int(in.Last):
			return fmt.Errorf("%s: %w; the last one: %w", said(in), ErrInUse, err)
		}
	}
}

// said is a range as the user has written it: in a file, or after a flag or a variable.
func said(in config.Ports) string {
	if in.Pos.IsZero() && in.Pos.File != "" {
		return in.Pos.File + " " + in.String()
	}
	return fmt.Sprintf("ports = %q", in)
}
