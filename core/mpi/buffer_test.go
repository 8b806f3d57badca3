package mpi

import (
	"errors"
	"fmt"
	"testing"

	"github.com/openimpi/impi/core/message"
)

// attach and detach are BufferAttach and BufferDetach for a rank of a test.
func attach(c *Comm, size int) error { return c.in().Process().AttachedBuffer().Attach(size) }

func detach(c *Comm) (int, error) { return c.in().Process().AttachedBuffer().Detach() }

func TestBufferedSend(t *testing.T) {
	layout{procs: 2, dataLen: 64, ackMark: 1, hiWater: 2}.run(t, func(t *testing.T, c *Comm) error {
		if c.Rank() == 1 {
			// Everything has been sent before the first is received.
			if _, err := Recv(c, []byte{0}, 0, 9); err != nil {
				return err
			}
			for i := range 3 {
				buf := make([]byte, 200)
				if _, err := Recv(c, buf, 0, 1); err != nil {
					return err
				}
				if err := expect("byte", buf[199], pattern(200, i)[199]); err != nil {
					return err
				}
			}
			return nil
		}
		if err := Bsend(c, []byte{0}, 1, 1); !errors.Is(err, message.ErrBuffer) {
			return fmt.Errorf("without a buffer: %w", err)
		}
		if err := attach(c, 3*(200+BsendOverhead)); err != nil {
			return err
		}
		if err := attach(c, 10); !errors.Is(err, message.ErrBuffer) {
			return fmt.Errorf("second buffer: %w", err)
		}
		if err := Send(c, []byte{0}, 1, 9); err != nil {
			return err
		}
		out := make([]byte, 200)
		for i := range 3 {
			copy(out, pattern(200, i))
			if err := Bsend(c, out, 1, 1); err != nil {
				return err
			}
			clear(out) // it is ours again
		}
		size, err := detach(c)
		return first(err, expect("size", size, 3*(200+BsendOverhead)))
	})
}

func TestBufferTooSmall(t *testing.T) {
	layout{procs: 2}.run(t, func(t *testing.T, c *Comm) error {
		if c.Rank() == 1 {
			return nil
		}
		if err := attach(c, 100+BsendOverhead); err != nil {
			return err
		}
		if err := Bsend(c, make([]byte, 101), 1, 1); !errors.Is(err, message.ErrBuffer) {
			return fmt.Errorf("got %w", err)
		}
		_, err := detach(c)
		return err
	})
}
