package node

import (
	"context"
	"crypto/rand"
	"errors"
	"io"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/internal/poll"
)

// sleepers waits for links before their packets: one thread for as many greetings
// as strangers may begin.
var sleepers poll.Shared

// talk reads and writes a link from a goroutine that may sleep: for the few
// bytes before the packets. A read takes exactly what it is asked for, as what
// comes behind belongs to somebody else. It ends with its context.
type talk struct {
	ctx context.Context
	l   link.Link
}

func newTalk(ctx context.Context, l link.Link) (*talk, error) {
	if l.Handle() == link.NoHandle {
		return nil, errors.New("the link has no descriptor to wait for")
	}
	return &talk{ctx, l}, nil
}

func (t *talk) wait(want link.Interest) error {
	if t.l.Arm(want) {
		return nil
	}
	return sleepers.Wait(t.ctx, t.l.Handle(), want)
}

// write sends all of b.
func (t *talk) write(b []byte) error {
	for len(b) > 0 {
		n, err := t.l.Send([][]byte{b})
		if err != nil {
			return err
		}
		if b = b[n:]; n == 0 {
			if err := t.wait(link.Writable); err != nil {
				return err
			}
		}
	}
	return nil
}

// read fills b and not a byte more.
func (t *talk) read(b []byte) error {
	for len(b) > 0 {
		n, err := t.l.Recv([][]byte{b})
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		if b = b[n:]; n == 0 {
			if err := t.wait(link.Readable); err != nil {
				return err
			}
		}
	}
	return nil
}

// greeting is a side of the greeting of direct links.
type greeting interface {
	Output() []byte
	Input(b []byte) (consumed int, err error)
}

// converse runs a greeting until it is far enough. It reads byte by byte: what
// comes behind the greeting belongs to the proc.
func converse(ctx context.Context, l link.Link, g greeting, enough func() bool) error {
	t, err := newTalk(ctx, l)
	if err != nil {
		return err
	}
	var b [1]byte
	for {
		if err := t.write(g.Output()); err != nil {
			return err
		}
		if enough() {
			return nil
		}
		if err := t.read(b[:]); err != nil {
			return err
		}
		if _, err := g.Input(b[:]); err != nil {
			_ = t.write(g.Output()) // the refusal; the peer may be gone
			return err
		}
	}
}

// nonce makes a number that nobody can foresee.
func nonce() (n dynamic.Nonce) {
	_, _ = rand.Read(n[:]) // never fails
	return n
}
