package stripe

import (
	"errors"
	"fmt"
	"io"
)

// MaxConnections is the maximum number of connections of a stripe.
const MaxConnections = 32

const (
	helloSize = 24
	magic     = "impS"
	version   = 2
	joined    = 1
)

// ErrProtocol is wrapped by errors about a peer that breaks the rules of this package.
var ErrProtocol = errors.New("the peer does not follow the protocol of several connections for a link")

// ErrGivenUp is wrapped by the error of Dial or Begin if the peer has closed the connection before
// it took it: the peer has too many connections that are no links yet, or does not listen any more.
var ErrGivenUp = errors.New("the peer gave up the connection before it was a link")

// ErrIncomplete is wrapped by no error any more.
//
// Deprecated: since version 1.1.0 of the SDK Accept does not wait for further connections.
var ErrIncomplete = errors.New("a link has too few connections")

// ErrEnded is wrapped by the error of Accept for a connection whose link has ended, or never was.
var ErrEnded = errors.New("there is no link to which the connection belongs, or it has ended")

type hello struct {
	index, count int
	id           [16]byte // the same for all connections of a stripe
}

func (h hello) say(w io.Writer) error {
	b := make([]byte, helloSize)
	copy(b, magic)
	b[4], b[5], b[6] = version, byte(h.index), byte(h.count)
	copy(b[8:], h.id[:])
	_, err := w.Write(b)
	return err
}

func hear(r io.Reader) (h hello, err error) {
	b := make([]byte, helloSize)
	if _, err := io.ReadFull(r, b); err != nil {
		return h, fmt.Errorf("the first %d bytes of a connection that is one of several: %w", helloSize, err)
	}
	h = hello{index: int(b[5]), count: int(b[6]), id: [16]byte(b[8:])}
	switch {
	case string(b[:4]) != magic:
		return h, fmt.Errorf("%w: a connection begins with %q, not with %q; perhaps the peer has other settings", ErrProtocol, b[:4], magic)
	case b[4] != version:
		return h, fmt.Errorf("%w: its version is %d, and %d is known here", ErrProtocol, b[4], version)
	case h.count < 1 || h.count > MaxConnections || h.index >= h.count || b[7] != 0:
		return h, fmt.Errorf("%w: connection %d of %d", ErrProtocol, h.index, h.count)
	}
	return h, nil
}

func welcome(w io.Writer) error {
	_, err := w.Write([]byte{joined})
	return err
}

func await(r io.Reader) error {
	var b [1]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return err
	}
	if b[0] != joined {
		return fmt.Errorf("%w: it answers with the byte %d, not with %d", ErrProtocol, b[0], joined)
	}
	return nil
}
