// Package relaytest is a relay between clients and a server, for tests: it keeps what
// passes, and cuts connections.
package relaytest

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
)

// Relay passes bytes on between clients and a server, keeps them, and cuts connections.
type Relay struct {
	ln     net.Listener
	server string
	wg     sync.WaitGroup

	mu     sync.Mutex
	more   sync.Cond             // signalled when total grows
	here   map[net.Conn]net.Conn // by the client's end, the server's end
	seen   []byte                // bytes of both directions
	total  int                   // number of connections
	closed bool
	mute   bool
	limit  func(n int) int // bytes after which connection n, from 0 on, is cut; 0: never
}

// New starts a relay to a server, until the test is over. Connection n, from 0 on, is cut
// after limit(n) bytes; 0 or no limit: never.
func New(t testing.TB, server string, limit func(n int) int) *Relay {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &Relay{ln: ln, server: server, here: make(map[net.Conn]net.Conn), limit: limit}
	if limit == nil {
		r.limit = func(int) int { return 0 }
	}
	r.more.L = &r.mu
	r.wg.Go(r.accept)
	t.Cleanup(r.Close)
	return r
}

// Addr returns the address where clients connect.
func (r *Relay) Addr() string { return r.ln.Addr().String() }

// AddrPort returns Addr in the form that clients of a server take.
func (r *Relay) AddrPort() netip.AddrPort { return r.ln.Addr().(*net.TCPAddr).AddrPort() }

// Stall stops all bytes, without an end of any connection.
func (r *Relay) Stall() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mute = true
}

func (r *Relay) accept() {
	for {
		c, err := r.ln.Accept()
		if err != nil {
			return
		}
		s, err := net.Dial("tcp", r.server)
		if err != nil {
			reset(c)
			continue
		}
		r.mu.Lock()
		if r.closed {
			r.mu.Unlock()
			c.Close()
			s.Close()
			return
		}
		r.here[c] = s
		left := r.limit(r.total)
		r.total++
		r.more.Broadcast()
		r.mu.Unlock()
		budget := &budget{left: left, none: left == 0}
		r.wg.Go(func() { r.pass(s, c, c, budget) })
		r.wg.Go(func() { r.pass(c, s, c, budget) })
	}
}

type budget struct {
	mu   sync.Mutex
	left int
	none bool
}

// take returns how many of n bytes may pass, and whether that was the last.
func (b *budget) take(n int) (int, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.none {
		return n, false
	}
	n = min(n, b.left)
	b.left -= n
	return n, b.left == 0
}

func (r *Relay) pass(to, from, client net.Conn, b *budget) {
	buf := make([]byte, 4096)
	for {
		n, err := from.Read(buf)
		n, last := b.take(n)
		r.mu.Lock()
		r.seen = append(r.seen, buf[:n]...)
		mute := r.mute
		r.mu.Unlock()
		if mute && err == nil {
			continue
		} else if mute {
			return
		}
		if _, werr := to.Write(buf[:n]); werr != nil || last {
			r.drop(client)
			return
		}
		if errors.Is(err, io.EOF) {
			if t, ok := to.(*net.TCPConn); ok {
				_ = t.CloseWrite()
			}
			return
		}
		if err != nil {
			r.drop(client)
			return
		}
	}
}

func (r *Relay) drop(client net.Conn) {
	r.mu.Lock()
	server := r.here[client]
	delete(r.here, client)
	r.mu.Unlock()
	reset(client)
	if server != nil {
		reset(server)
	}
}

// Cut resets all connections, as `ss -K` does. The clients' ends come first: a server that notices
// a loss cannot report it to another client.
func (r *Relay) Cut() {
	r.mu.Lock()
	all := r.here
	r.here = make(map[net.Conn]net.Conn)
	r.mu.Unlock()
	for c := range all {
		reset(c)
	}
	for _, s := range all {
		reset(s)
	}
}

// CutClients resets the clients' ends only: the server does not notice it.
func (r *Relay) CutClients() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.here {
		reset(c)
	}
}

// Connections returns the number of connections so far.
func (r *Relay) Connections() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total
}

// Await waits until there were n connections.
func (r *Relay) Await(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.total < n {
		r.more.Wait()
	}
}

// Bytes returns the bytes of all connections so far, in the order in which they passed.
func (r *Relay) Bytes() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]byte(nil), r.seen...)
}

// Close ends all connections, and takes no more.
func (r *Relay) Close() {
	r.ln.Close()
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.Cut()
	r.wg.Wait()
}

// reset ends a connection with a RST.
func reset(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	c.Close()
}
