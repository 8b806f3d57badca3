package conn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/openimpi/impi/plugins/sdk/transports"
)

// ErrFrame is wrapped by the error of a connection whose peer does not send the frames of
// Framed.
var ErrFrame = errors.New("bad frame")

const maxFrame = 64 << 10

// Framed adds a half-close to a connection that has none, such as a WebSocket's. Both ends
// must use it: each piece of data, of 1 to 65536 bytes, is preceded by its length in 4
// bytes, big-endian, and the length 0 is the end. If a connection ends without it, Read
// returns io.ErrUnexpectedEOF.
func Framed(c net.Conn) transports.Conn { return &framed{Conn: c} }

type framed struct {
	net.Conn

	left  int  // bytes of the current frame that were not read yet
	ended bool // the peer's end was read

	write  sync.Mutex // guards Write and the fields below
	out    []byte
	closed bool // CloseWrite was called
}

// Read returns bytes of one frame only, and io.EOF after the frame of length 0.
func (f *framed) Read(b []byte) (int, error) {
	switch {
	case f.ended:
		return 0, io.EOF
	case len(b) == 0:
		return 0, nil
	}
	if f.left == 0 {
		if err := f.next(); err != nil {
			return 0, err
		}
	}
	n, err := f.Conn.Read(b[:min(len(b), f.left)])
	if f.left -= n; n > 0 {
		return n, nil // the next Read returns the error
	}
	return n, cut(err)
}

func (f *framed) next() error {
	var head [4]byte
	if _, err := io.ReadFull(f.Conn, head[:]); err != nil {
		return cut(err)
	}
	switch n := binary.BigEndian.Uint32(head[:]); {
	case n == 0:
		f.ended = true
		return io.EOF
	case n > maxFrame:
		return fmt.Errorf("%w: of %d bytes, at most %d", ErrFrame, n, maxFrame)
	default:
		f.left = int(n)
		return nil
	}
}

// cut converts the error of a stream that ended in a frame or without an end.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Write sends b in frames of at most maxFrame bytes. Several goroutines may call it.
func (f *framed) Write(b []byte) (n int, err error) {
	f.write.Lock()
	defer f.write.Unlock()
	if f.closed {
		return 0, net.ErrClosed
	}
	for len(b) > 0 {
		k := min(len(b), maxFrame)
		f.out = append(binary.BigEndian.AppendUint32(f.out[:0], uint32(k)), b[:k]...)
		if _, err := f.Conn.Write(f.out); err != nil {
			return n, err
		}
		n, b = n+k, b[k:]
	}
	return n, nil
}

// CloseWrite sends the end once; further calls do nothing.
func (f *framed) CloseWrite() error {
	f.write.Lock()
	defer f.write.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	_, err := f.Conn.Write(make([]byte, 4))
	return err
}

// NetConn returns the wrapped connection.
func (f *framed) NetConn() net.Conn { return f.Conn }
