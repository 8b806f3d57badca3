package transporttest

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"github.com/openimpi/impi/core/link"
)

// pattern is an endless stream of bytes in which every place looks different:
// what is lost, doubled or swapped shows.
type pattern struct {
	seed   uint64
	offset uint64
	block  [8]byte
}

// next fills b with the stream's next bytes.
func (p *pattern) next(b []byte) {
	for len(b) > 0 {
		at := p.offset & 7
		if at == 0 {
			binary.LittleEndian.PutUint64(p.block[:], mix(p.seed+p.offset>>3))
		}
		n := copy(b, p.block[at:])
		b = b[n:]
		p.offset += uint64(n)
	}
}

// check compares b with the stream's next bytes.
func (p *pattern) check(b []byte) error {
	var want [4096]byte
	for len(b) > 0 {
		n := min(len(b), len(want))
		at := p.offset
		p.next(want[:n])
		for i, x := range want[:n] {
			if b[i] != x {
				return fmt.Errorf("byte %d of the stream is %#x, not %#x", at+uint64(i), b[i], x)
			}
		}
		b = b[n:]
	}
	return nil
}

// mix is splitmix64's output function.
func mix(x uint64) uint64 {
	x = (x + 1) * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// cut is how one side of a transfer cuts it: into batches of at most slices
// slices, each of at most size bytes, chosen by rng; exactly that many without.
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
			clear(buf[:n]) // a link that still needs it fails the check
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
