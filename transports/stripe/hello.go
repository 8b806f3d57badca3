package stripe

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
)

// MaxConnections is the most connections of a stripe.
const MaxConnections = 32

const (
	helloSize = 24
	magic     = "impS"
	version   = 1
	joined    = 1
)

// ErrProtocol is wrapped by errors about a peer that breaks the rules of this package.
var ErrProtocol = errors.New("the peer does not follow the protocol of several connections for a link")

// Hello is what a dialler begins a connection with.
type Hello struct {
	Index, Count int
	ID           [16]byte // the same for all connections of a stripe
}

// Hellos returns those of a new stripe of count connections.
func Hellos(count int) []Hello {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	list := make([]Hello, count)
	for i := range list {
		list[i] = Hello{i, count, id}
	}
	return list
}

// Say writes the hello.
func (h Hello) Say(w io.Writer) error {
	b := make([]byte, helloSize)
	copy(b, magic)
	b[4], b[5], b[6] = version, byte(h.Index), byte(h.Count)
	copy(b[8:], h.ID[:])
	_, err := w.Write(b)
	return err
}

// Hear reads a hello.
func Hear(r io.Reader) (h Hello, err error) {
	b := make([]byte, helloSize)
	if _, err := io.ReadFull(r, b); err != nil {
		return h, fmt.Errorf("the first %d bytes of a connection that is one of several: %w", helloSize, err)
	}
	h = Hello{Index: int(b[5]), Count: int(b[6]), ID: [16]byte(b[8:])}
	switch {
	case string(b[:4]) != magic:
		return h, fmt.Errorf("%w: a connection begins with %q, not with %q; perhaps the peer has other settings", ErrProtocol, b[:4], magic)
	case b[4] != version:
		return h, fmt.Errorf("%w: its version is %d, and %d is known here", ErrProtocol, b[4], version)
	case h.Count < 2 || h.Count > MaxConnections || h.Index >= h.Count || b[7] != 0:
		return h, fmt.Errorf("%w: connection %d of %d", ErrProtocol, h.Index, h.Count)
	}
	return h, nil
}

// Welcome tells the dialler on connection 0 that all connections are there.
func Welcome(w io.Writer) error {
	_, err := w.Write([]byte{joined})
	return err
}

// Await waits for Welcome.
func Await(r io.Reader) error {
	var b [1]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return err
	}
	if b[0] != joined {
		return fmt.Errorf("%w: it answers with the byte %d, not with %d", ErrProtocol, b[0], joined)
	}
	return nil
}
