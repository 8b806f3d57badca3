package quic

import (
	"io"
	"net"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
)

// stream is a link's stream as a connection. It implements transports.Conn.
type stream struct {
	s     *quic.Stream
	of    *connection
	over  sync.Once
	write sync.Mutex // held during the library's Write
	cut   bool       // a Write took only a part; guarded by write
}

// Read returns the next bytes, or io.EOF after the peer's last.
func (x *stream) Read(b []byte) (int, error) {
	n, err := x.s.Read(b)
	if err != nil && err != io.EOF { //nolint:errorlint // the library reports it bare
		err = x.of.explain(err)
	}
	return n, err
}

// Write returns when the library has taken all of b, or fails.
func (x *stream) Write(b []byte) (int, error) {
	x.write.Lock()
	defer x.write.Unlock()
	n, err := x.s.Write(b)
	if err != nil {
		x.cut = true
		err = x.of.explain(err)
	}
	return n, err
}

// CloseWrite ends this side's stream.
func (x *stream) CloseWrite() error {
	x.write.Lock()
	defer x.write.Unlock()
	return x.of.explain(x.s.Close())
}

// Close ends both directions. What Write has taken is still sent.
func (x *stream) Close() error {
	x.end(func() {
		_ = x.s.SetWriteDeadline(time.Unix(1, 0)) // ends a waiting Write, which must be complete or cut before Close
		x.write.Lock()
		defer x.write.Unlock()
		if x.cut {
			x.s.CancelWrite(resetLost)
		} else {
			_ = x.s.Close() // fails if the peer has stopped reading
		}
	})
	return nil
}

// Break ends both directions, and tells the peer that bytes were lost.
func (x *stream) Break() { x.end(func() { x.s.CancelWrite(resetLost) }) }

// end ends the stream, once; writing is called to end its sending half.
func (x *stream) end(writing func()) {
	x.over.Do(func() {
		x.s.CancelRead(stopClosed)
		writing()
		x.of.closed(x.s.StreamID(), ours)
	})
}

// RTT returns the smoothed round-trip time of the stream's connection.
func (x *stream) RTT() (time.Duration, bool) {
	rtt := x.of.qc.ConnectionStats().SmoothedRTT
	return rtt, rtt > 0
}

// LocalAddr returns the address of the UDP socket.
func (x *stream) LocalAddr() net.Addr { return x.of.qc.LocalAddr() }

// RemoteAddr returns the peer's present address.
func (x *stream) RemoteAddr() net.Addr { return x.of.qc.RemoteAddr() }

// SetDeadline bounds Read and Write.
func (x *stream) SetDeadline(t time.Time) error { return x.s.SetDeadline(t) }

// SetReadDeadline sets when Read fails, also one that waits.
func (x *stream) SetReadDeadline(t time.Time) error { return x.s.SetReadDeadline(t) }

// SetWriteDeadline sets when Write fails, also one that waits.
func (x *stream) SetWriteDeadline(t time.Time) error { return x.s.SetWriteDeadline(t) }
