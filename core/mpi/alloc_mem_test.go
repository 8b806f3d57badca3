package mpi

import (
	"bytes"
	"math"
	"testing"

	"github.com/openimpi/impi/core/mpierr"
)

// TestTooMuchMemory: memory that nobody has is an error and not the end of the process.
func TestTooMuchMemory(t *testing.T) {
	for _, n := range []int{math.MaxInt, math.MaxInt - 4096, 1 << 60} {
		if _, err := AllocMem(n); ErrorClass(err) != mpierr.NoMem {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if _, err := AllocMem(-1); ErrorClass(err) != mpierr.Arg {
		t.Errorf("-1 byte: %v", err)
	}
}

// TestAllocMem: the memory is zero, has the length, and can be sent from and received into; one of no
// bytes can be freed, too.
func TestAllocMem(t *testing.T) {
	everywhere(t, 2, func(t *testing.T, c *Comm) error {
		for _, n := range []int{0, 1, 100_000, 3 << 20} {
			out, err := AllocMem(n)
			if err != nil {
				return err
			}
			in, err := AllocMem(n)
			if err != nil {
				return err
			}
			if len(out) != n || len(bytes.Trim(out, "\x00")) > 0 {
				t.Errorf("%d bytes of %d, which are not all zero", len(out), n)
			}
			for i := range out {
				out[i] = byte(i) | 1
			}
			other := c.Rank() ^ 1
			if _, err := Sendrecv(c, out, other, 1, in, other, 1); err != nil {
				return err
			}
			if !bytes.Equal(in, out) {
				t.Errorf("%d bytes are others than were sent", n)
			}
			FreeMem(out)
			FreeMem(in)
		}
		return nil
	})
}
