package transporttest

import (
	"io"
	"net"
	"regexp"
	"strings"
	"sync"
)

type relay struct {
	address string // what to dial instead

	mu    sync.Mutex
	limit [2]int // bytes until the cut; negative: none
	reset bool
	open  []*net.TCPConn
}

// where finds the place in a listener's address at which it can be reached.
var where = regexp.MustCompile(`(127\.[0-9.]+|\[::1\]):[0-9]+`)

// relay puts a relay before a listener on this machine. The case is skipped if the listener's
// address does not say how to get there by TCP.
func (e *env) relay(address string) *relay {
	e.Helper()
	target := where.FindString(address)
	if target == "" {
		e.Skipf("%q is not reached by TCP on this machine", address)
	}
	// Another process may listen for TCP at a UDP port's number.
	if free, err := net.ListenPacket("udp", target); err == nil {
		_ = free.Close()
	} else {
		e.Skipf("%s is a UDP port", target)
	}
	// A trial connection would be one that the listener has to judge.
	if free, err := net.Listen("tcp", target); err == nil {
		_ = free.Close()
		e.Skipf("nobody listens for TCP at %s", target)
	}
	host, _, _ := net.SplitHostPort(target)
	front, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	e.must(err)
	r := &relay{address: strings.Replace(address, target, front.Addr().String(), 1), limit: [2]int{-1, -1}}
	var all sync.WaitGroup
	all.Go(func() { r.accept(front, target, &all) })
	e.Cleanup(func() {
		front.Close()
		r.close()
		all.Wait()
	})
	return r
}

func (r *relay) accept(front net.Listener, target string, all *sync.WaitGroup) {
	for {
		c, err := front.Accept()
		if err != nil {
			return
		}
		d, err := net.Dial("tcp", target)
		if err != nil {
			_ = c.Close()
			continue
		}
		near, far := c.(*net.TCPConn), d.(*net.TCPConn)
		r.mu.Lock()
		r.open = append(r.open, near, far)
		r.mu.Unlock()
		all.Go(func() { r.pass(0, near, far) })
		all.Go(func() { r.pass(1, far, near) })
	}
}

// pass passes one direction on, its end included.
func (r *relay) pass(direction int, from, to *net.TCPConn) {
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(buf)
		n, last := r.admit(direction, n)
		if _, failed := to.Write(buf[:n]); failed != nil || last {
			r.close()
			return
		}
		switch {
		case err == io.EOF: //nolint:errorlint // as net.Conn has it
			_ = to.CloseWrite()
			return
		case err != nil:
			r.close()
			return
		}
	}
}

// admit returns how many of n bytes are passed on, and whether the cut follows.
func (r *relay) admit(direction, n int) (admitted int, last bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	limit := &r.limit[direction]
	if *limit < 0 {
		return n, false
	}
	n = min(n, *limit)
	*limit -= n
	return n, *limit == 0
}

func (r *relay) cut(direction, after int, reset bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.limit[direction], r.reset = after, reset
}

func (r *relay) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.open {
		if r.reset {
			_ = c.SetLinger(0)
		}
		_ = c.Close()
	}
	r.open = nil
}
