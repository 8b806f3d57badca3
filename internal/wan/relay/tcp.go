package relay

import (
	"context"
	"fmt"
	"net"
	"sync"

	"github.com/openimpi/impi/internal/wan"
)

const (
	// chunk is how much of a stream is under way as one: a fraction of a millisecond at 1 Gb/s.
	chunk = 16 << 10
	// behind bounds the bytes that have arrived for a connection that does not take them; beyond, what
	// comes for it is not read.
	behind = 4 << 20
	// window bounds what may be under way on a line without a rate.
	window = 64 << 20
)

// TCP relays connections at an address, which may have port 0, to another one. All connections
// share the lines. TCP refuses a shape with losses.
func TCP(listen, target string, there, back wan.Shape, seed uint64) (*Relay, error) {
	if !there.Lossless() || !back.Lossless() {
		return nil, errLossy
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("a relay: %w", err)
	}
	// Bytes that do not fit into the queue wait in the sockets: nothing may be dropped.
	most := [2]int{underWay(there), underWay(back)}
	there.Queue, back.Queue = 0, 0
	r, ctx, err := start(there, back, seed)
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	r.there.most, r.back.most = most[0], most[1]
	r.address, r.close = l.Addr().String(), l.Close
	r.wait.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return // the listener is closed
			}
			r.wait.Go(func() { r.connect(ctx, near, target) })
		}
	})
	return r, nil
}

// underWay is how many bytes are taken of streams before they have arrived.
func underWay(s wan.Shape) int {
	if s.Rate == 0 {
		return window
	}
	return max(4*chunk, s.Queue+s.BandwidthDelay())
}

// connect relays a connection until both directions have ended, or one of them has failed.
func (r *Relay) connect(ctx context.Context, near net.Conn, target string) {
	defer near.Close()
	var d net.Dialer
	far, err := d.DialContext(ctx, "tcp", target)
	if err != nil {
		return // the connecting side sees the connection end
	}
	defer far.Close()
	defer context.AfterFunc(ctx, func() { _, _ = near.Close(), far.Close() })()
	var both sync.WaitGroup
	for _, way := range []struct {
		from, to net.Conn
		by       *pipe
	}{{near, far, r.there}, {far, near, r.back}} {
		out := newOutput(ctx)
		both.Go(func() { out.write(way.to.(*net.TCPConn), way.from) })
		both.Go(func() { out.read(way.from, way.by) })
	}
	both.Wait()
}

// output is what has arrived for one end of a connection.
type output struct {
	mu      sync.Mutex
	changed *sync.Cond
	waiting [][]byte
	bytes   int  // of them
	whole   bool // the end of the stream has arrived
	broken  bool // this direction has failed
	stop    func() bool
}

func newOutput(ctx context.Context) *output {
	o := &output{}
	o.changed = sync.NewCond(&o.mu)
	o.stop = context.AfterFunc(ctx, o.fail)
	return o
}

func (o *output) fail() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.broken = true
	o.changed.Broadcast()
}

// take implements sink: no bytes are the end of the stream.
func (o *output) take(b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting, o.bytes, o.whole = append(o.waiting, b), o.bytes+len(b), o.whole || len(b) == 0
	o.changed.Broadcast()
}

func (o *output) read(from net.Conn, by *pipe) {
	for {
		o.mu.Lock()
		for o.bytes > behind && !o.broken {
			o.changed.Wait()
		}
		broken := o.broken
		o.mu.Unlock()
		if broken {
			return
		}
		b := make([]byte, chunk)
		n, err := from.Read(b)
		if n > 0 {
			by.await(b[:n:n], o)
		}
		if err != nil {
			by.offer(nil, o)
			return
		}
	}
}

func (o *output) write(to *net.TCPConn, from net.Conn) {
	defer o.stop()
	for {
		o.mu.Lock()
		for len(o.waiting) == 0 && !o.broken {
			o.changed.Wait()
		}
		if o.broken {
			o.mu.Unlock()
			return
		}
		b := o.waiting[0]
		o.waiting = o.waiting[1:]
		o.mu.Unlock()
		if len(b) == 0 {
			_ = to.CloseWrite() // it fails only if the other end has closed, too
			return
		}
		if _, err := to.Write(b); err != nil {
			o.fail()
			_ = from.Close() // the writer must learn that the reader is gone
			return
		}
		o.mu.Lock()
		o.bytes -= len(b)
		o.changed.Broadcast()
		o.mu.Unlock()
	}
}
