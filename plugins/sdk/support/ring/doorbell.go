package ring

import "github.com/openimpi/impi/plugins/sdk/link"

// Bell is the socket of a region whose rings are not those of this package, with the same rules:
// what is sent over it only wakes the other side, and its end shows that the other side has gone.
type Bell struct{ bell }

// NewBell makes a Bell, which owns the socket.
func NewBell(sock int) *Bell { return &Bell{bell{sock: sock, file: -1}} }

// Ring wakes the other side, if it sleeps on its end.
func (b *Bell) Ring() { b.ring() }

// Plug fills the socket, so that it is not writable before the other side has called Drain.
func (b *Bell) Plug() { b.plug() }

// Drain reads all bytes of the socket, and reports whether the other side has gone.
func (b *Bell) Drain() (ended bool) { return b.drain() }

// Give takes the socket out of the Bell, for the caller. It is link.NoHandle after Close.
func (b *Bell) Give() int {
	_, sock := b.give()
	return sock
}

// Close closes the socket.
func (b *Bell) Close() {
	if b.Handle() != link.NoHandle {
		b.close()
	}
}

// AdoptBell is NewBell for a descriptor that another process has sent: it must be a stream socket.
// It does not own the descriptor if there is an error.
func AdoptBell(sock int) (*Bell, error) {
	if err := prepareSocket(sock); err != nil {
		return nil, err
	}
	return NewBell(sock), nil
}
