package dial

import (
	"context"
	"errors"
	"io"

	"github.com/openimpi/impi/internal/poll"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// sleepers waits for links in one thread, so that peers who connect and say nothing cost no thread
// each.
var sleepers poll.Shared

// Blocking reads and writes the few bytes on a link before its packets. Its methods block until
// they are done or their context ends. A read never takes more bytes than asked for, as the bytes
// after them are for the proc.
type Blocking struct {
	ctx context.Context
	l   link.Link
}

// NewBlocking returns a Blocking for a link, which must have a descriptor to wait for. It does not
// own the link.
func NewBlocking(ctx context.Context, l link.Link) (*Blocking, error) {
	if l.Handle() == link.NoHandle {
		return nil, errors.New("the link has no descriptor to wait for")
	}
	return &Blocking{ctx, l}, nil
}

func (t *Blocking) wait(want link.Interest) error {
	if t.l.Arm(want) {
		return nil
	}
	return sleepers.Wait(t.ctx, t.l.Handle(), want)
}

// WriteAll sends all of b.
func (t *Blocking) WriteAll(b []byte) error { return t.move(b, t.l.Send, link.Writable) }

// ReadFull fills b and not a byte more.
func (t *Blocking) ReadFull(b []byte) error {
	err := t.move(b, t.l.Recv, link.Readable)
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (t *Blocking) move(b []byte, call func([][]byte) (int, error), want link.Interest) error {
	for len(b) > 0 {
		n, err := call([][]byte{b})
		if err != nil {
			return err
		}
		if b = b[n:]; n == 0 {
			if err := t.wait(want); err != nil {
				return err
			}
		}
	}
	return nil
}
