package resume

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/openimpi/impi/plugins/sdk/link"
)

const helloBody = 40

// HelloSize is the length of a HELLO, in bytes.
const HelloSize = headerSize + helloBody

// ResumableID is the name of a Link at both of its ends: random bytes, chosen by the dialler. See
// "Who asks whom" in docs/decisions/0015-link-resume.md for what else a dialler must prove.
type ResumableID [16]byte

// String returns the session's first bytes, enough to tell sessions apart.
func (s ResumableID) String() string { return fmt.Sprintf("%x", s[:4]) }

// Hello is the first frame that each side sends on an underlying link (see Handshake in the
// package comment). Positions count the bytes of a stream, and its end as one more.
type Hello struct {
	Session  ResumableID
	Epoch    uint64 // epoch of the underlying link; the acceptor echoes the dialler's
	Oldest   uint64 // position in the sender's stream from which it can replay
	Received uint64 // position in the receiver's stream from which it must continue
	Ack      uint64 // position in the receiver's stream up to which all was delivered
	Window   uint32 // maximum bytes that may be on their way to the sender, and from it
	Checksum bool   // the sender wants checksums
}

// put writes the frame to b[:HelloSize].
func (h *Hello) put(b []byte) {
	body := b[headerSize:HelloSize]
	copy(body, h.Session[:])
	binary.BigEndian.PutUint64(body[16:], h.Epoch)
	binary.BigEndian.PutUint64(body[24:], h.Received)
	binary.BigEndian.PutUint32(body[32:], h.Window)
	binary.BigEndian.PutUint32(body[36:], 0)
	head := header{
		kind: kindHello, flags: flagSum, length: helloBody, seq: h.Oldest, ack: h.Ack, sum: checksum(0, body),
	}
	if h.Checksum {
		head.flags |= flagWantSum
	}
	head.put(b)
}

// ParseHello parses a HELLO from b[:HelloSize]. It does not check the positions; Accept does.
func ParseHello(b []byte) (Hello, error) {
	if len(b) < HelloSize {
		return Hello{}, fmt.Errorf("resume: %w: HELLO of %d bytes instead of %d", ErrFrame, len(b), HelloSize)
	}
	head, err := parseHelloHead(b)
	if err != nil {
		return Hello{}, err
	}
	return parseHello(&head, b[headerSize:HelloSize])
}

func parseHelloHead(b []byte) (header, error) {
	head, err := parseHeader(b, true)
	if err == nil && head.kind != kindHello {
		err = fmt.Errorf("%w: %v comes before HELLO", ErrFrame, head.kind)
	}
	if err != nil {
		return header{}, fmt.Errorf("resume: %w", err)
	}
	return head, nil
}

// parseHello reads what follows the header of a HELLO (docs/decisions/0015-link-resume.md).
func parseHello(head *header, body []byte) (Hello, error) {
	h := Hello{
		Session:  ResumableID(body[:16]),
		Epoch:    binary.BigEndian.Uint64(body[16:]),
		Oldest:   head.seq,
		Received: binary.BigEndian.Uint64(body[24:]),
		Ack:      head.ack,
		Window:   binary.BigEndian.Uint32(body[32:]),
		Checksum: head.flags&flagWantSum != 0,
	}
	switch rest := binary.BigEndian.Uint32(body[36:]); {
	case head.sum != checksum(0, body):
		return Hello{}, fmt.Errorf("resume: %w: HELLO %x", ErrChecksum, body)
	case rest != 0:
		return Hello{}, fmt.Errorf("resume: %w: HELLO ends with %08x instead of 0", ErrFrame, rest)
	case h.Window == 0:
		return Hello{}, fmt.Errorf("resume: %w: HELLO with a window of no bytes", ErrFrame)
	}
	return h, nil
}

// Arrival reads the HELLO from an underlying link that was accepted, so that the acceptor
// can find the Link that it belongs to. The zero Arrival is ready to use.
type Arrival struct {
	buf [HelloSize]byte
	n   int
}

// Read reads the bytes of the HELLO that have arrived, and none after it. It does not block: ok is
// true if the HELLO is complete. After an error l is useless.
func (a *Arrival) Read(l link.Link) (h Hello, ok bool, err error) {
	for a.n < len(a.buf) {
		n, err := l.Recv([][]byte{a.buf[a.n:]})
		if err == io.EOF { //nolint:errorlint // links report io.EOF itself
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return Hello{}, false, fmt.Errorf("resume: after %d bytes of HELLO: %w", a.n, err)
		}
		if n == 0 {
			return Hello{}, false, a.checkHead()
		}
		a.n += n
	}
	h, err = ParseHello(a.buf[:])
	return h, err == nil, err
}

// checkHead fails as soon as the header shows that the peer speaks another protocol.
func (a *Arrival) checkHead() error {
	if a.n < headerSize {
		return nil
	}
	_, err := parseHelloHead(a.buf[:])
	return err
}
