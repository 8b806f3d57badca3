package tcp

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
	"github.com/openimpi/impi/plugins/sdk/transports/stripe"
)

const (
	maxAddresses = 8
	// headStart is how long one address is tried before the next one is tried in parallel
	// (RFC 8305, Connection Attempts).
	headStart = 250 * time.Millisecond
)

// parseAddresses reads "ip:port", or several separated by commas, and of how many connections a
// link is.
func parseAddresses(to transports.DialSpec) (list []netip.AddrPort, streams int, err error) {
	text, streams, err := stripe.ParseAddress(to.Address)
	if err != nil {
		return nil, 0, socket.BadAddress(name, "dial", shortened(to.Address), err.Error())
	}
	texts := strings.SplitN(text, ",", maxAddresses+1)
	if len(texts) > maxAddresses {
		return nil, 0, socket.BadAddress(name, "dial", shortened(to.Address), "it has more parts than a peer has addresses")
	}
	list = make([]netip.AddrPort, len(texts))
	for i, text := range texts {
		a, err := netip.ParseAddrPort(text)
		if err != nil || a.Port() == 0 {
			return nil, 0, socket.BadAddress(name, "dial", shortened(to.Address), `it should be "ip:port"`)
		}
		list[i] = a
	}
	return alternate(list), streams, nil
}

func shortened(text string) string {
	if len(text) > 100 {
		return text[:100] + "..."
	}
	return text
}

// alternate orders the addresses for dialling: as the peer lists them, but with IPv4 and
// IPv6 alternating, so that the lack of one costs little time.
func alternate(list []netip.AddrPort) []netip.AddrPort {
	var same, other []netip.AddrPort
	for _, a := range list {
		if a.Addr().Unmap().Is4() == list[0].Addr().Unmap().Is4() {
			same = append(same, a)
		} else {
			other = append(other, a)
		}
	}
	out := make([]netip.AddrPort, 0, len(list))
	for i := range max(len(same), len(other)) {
		if i < len(same) {
			out = append(out, same[i])
		}
		if i < len(other) {
			out = append(out, other[i])
		}
	}
	return out
}

type attempt struct {
	conn *net.TCPConn
	err  error
}

// race connects to the address that answers first. Each has a head start over the next one,
// which ends at once if it fails.
func race(ctx context.Context, list []netip.AddrPort, dial func(context.Context, netip.AddrPort) (*net.TCPConn, error)) (*net.TCPConn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan attempt, len(list))
	start := func(to netip.AddrPort) {
		c, err := dial(ctx, to)
		done <- attempt{c, err}
	}
	var first error
	running, next := 0, 0
	timer := time.NewTimer(0)
	defer timer.Stop()
	for next < len(list) || running > 0 {
		select {
		case <-timer.C:
		case a := <-done:
			running--
			if a.err == nil {
				go closeLate(done, running)
				return a.conn, nil
			}
			if first == nil {
				first = a.err // the error of the peer's first address
			}
		}
		if next < len(list) {
			go start(list[next])
			next, running = next+1, running+1
			timer.Reset(headStart)
		}
	}
	return nil, first
}

// closeLate closes the connections that came after the first.
func closeLate(done chan attempt, running int) {
	for range running {
		if a := <-done; a.err == nil {
			_ = a.conn.Close() // the connection was not used
		}
	}
}
