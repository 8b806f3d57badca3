package relay

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/openimpi/impi/internal/wan"
)

const (
	// header is what IP and UDP add to a datagram on a line.
	header = 28
	// silence is how long a sender is known after its last datagram.
	silence = 5 * time.Minute
	// senders bounds how many are known at a time; the datagrams of more are dropped.
	senders = 1 << 10
	// longest is the maximum size of a datagram.
	longest = 65535
)

// UDP relays datagrams at an address, which may have port 0, to another one: the datagrams of each
// sender come from a port of their own, and answers to that port go to the sender. A line whose
// queue has no limit (0 bytes) holds all that the senders send.
func UDP(listen, target string, there, back wan.Shape, seed uint64) (*Relay, error) {
	to, err := net.ResolveUDPAddr("udp", target)
	if err != nil {
		return nil, fmt.Errorf("a relay: %w", err)
	}
	at, err := net.ResolveUDPAddr("udp", listen)
	if err != nil {
		return nil, fmt.Errorf("a relay: %w", err)
	}
	l, err := net.ListenUDP("udp", at)
	if err != nil {
		return nil, fmt.Errorf("a relay: %w", err)
	}
	r, ctx, err := start(there, back, seed)
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	r.address, r.close = l.LocalAddr().String(), l.Close
	r.wait.Go(func() { r.serve(ctx, l, to) })
	return r, nil
}

func (r *Relay) serve(ctx context.Context, l *net.UDPConn, to *net.UDPAddr) {
	var mu sync.Mutex
	known := map[netip.AddrPort]*net.UDPConn{}
	b := make([]byte, longest)
	for {
		n, from, err := l.ReadFromUDPAddrPort(b)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			continue // an ICMP message for an earlier datagram
		}
		mu.Lock()
		c := known[from]
		if c == nil && len(known) < senders {
			if c, err = net.DialUDP("udp", nil, to); err == nil {
				known[from] = c
				r.wait.Go(func() {
					r.answer(ctx, l, c, from)
					mu.Lock()
					delete(known, from)
					mu.Unlock()
				})
			}
		}
		mu.Unlock()
		if c != nil {
			r.datagram(r.there, b[:n], socket{c, netip.AddrPort{}})
		}
	}
}

func (r *Relay) answer(ctx context.Context, l, c *net.UDPConn, from netip.AddrPort) {
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	b := make([]byte, longest)
	for {
		_ = c.SetReadDeadline(time.Now().Add(silence))
		n, err := c.Read(b)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			r.datagram(r.back, b[:n], socket{l, from})
		case errors.Is(err, os.ErrDeadlineExceeded):
			return
		}
	}
}

func (r *Relay) datagram(p *pipe, b []byte, to socket) {
	p.offer(append(make([]byte, 0, len(b)+header), b...)[:len(b)+header], to)
}

type socket struct {
	c  *net.UDPConn
	to netip.AddrPort // invalid if c is connected
}

// take implements sink. What cannot be sent is lost.
func (s socket) take(b []byte) {
	b = b[:len(b)-header]
	if s.to.IsValid() {
		_, _ = s.c.WriteToUDPAddrPort(b, s.to)
		return
	}
	_, _ = s.c.Write(b)
}
