package transporttest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/openimpi/impi/plugins/sdk/link"
)

// period is the number of bytes after which a pattern repeats itself: a prime, so that it is no
// multiple of any buffer's size, and what is lost, doubled or swapped shows.
const period = 1048573

var noise = sync.OnceValue(func() []byte {
	b := make([]byte, period)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b) // never fails
	return b
})

// pattern is an endless stream of bytes, from a given place of the noise on.
type pattern struct {
	seed   uint64
	offset uint64
}

func (p *pattern) part(n int) []byte {
	rest := noise()[(p.seed+p.offset)%period:]
	rest = rest[:min(n, len(rest))]
	p.offset += uint64(len(rest))
	return rest
}

func (p *pattern) next(b []byte) {
	for len(b) > 0 {
		b = b[copy(b, p.part(len(b))):]
	}
}

func (p *pattern) check(b []byte) error {
	for len(b) > 0 {
		at := p.offset
		want := p.part(len(b))
		if !bytes.Equal(b[:len(want)], want) {
			for i := range want {
				if b[i] != want[i] {
					return fmt.Errorf("byte %d of the stream is %#x, not %#x", at+uint64(i), b[i], want[i])
				}
			}
		}
		b = b[len(want):]
	}
	return nil
}

// cut is how one side of a transfer divides it: into batches of at most slices slices of at most
// size bytes each, chosen by rng; exactly as many if rng is nil.
type cut struct {
	rng    *rand.Rand
	slices int
	size   int
}

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// batch makes the next batch, of at most left bytes in memory from buf.
func (c *cut) batch(buf []byte, left int64) [][]byte {
	slices := c.slices
	if c.rng != nil {
		slices = 1 + c.rng.IntN(c.slices)
	}
	var batch [][]byte
	for range slices {
		size := c.size
		if c.rng != nil {
			size = c.rng.IntN(c.size + 1) // 0 too: an empty slice
		}
		size = int(min(int64(size), left, int64(len(buf))))
		batch = append(batch, buf[:size:size])
		buf = buf[size:]
		left -= int64(size)
	}
	return batch
}

// stream moves total bytes of a pattern from one end to the other and checks
// them, with both ends at work at the same time.
func (e *env) stream(from, to link.Link, total int64, out, in cut) (send, recv func() error) {
	const seed = 42
	send = func() error {
		p := pattern{seed: seed}
		buf := make([]byte, out.slices*out.size)
		for left := total; left > 0; {
			batch := out.batch(buf, left)
			n := link.Len(batch)
			p.next(buf[:n])
			if err := e.send(from, batch...); err != nil {
				return err
			}
			clear(buf[:n]) // a link that still needs the bytes fails the check
			left -= int64(n)
		}
		return nil
	}
	recv = func() error {
		p := pattern{seed: seed}
		buf := make([]byte, in.slices*in.size)
		w := e.waiter()
		for left := total; left > 0; {
			n, err := to.Recv(in.batch(buf, left))
			if err != nil {
				return fmt.Errorf("receive, %d bytes before the end: %w", left, err)
			}
			if n > 0 {
				w.moved()
				left -= int64(n)
				if err := p.check(buf[:n]); err != nil {
					return err
				}
			} else if err := w.wait(to, link.Readable); err != nil {
				return fmt.Errorf("receive, %d bytes before the end: %w", left, err)
			}
		}
		return nil
	}
	return send, recv
}
