// A buffer of more than 32 bits needs an int of 64.

//go:build !386 && !arm && !mips && !mipsle

package message

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/openimpi/impi/internal/skips"
)

const huge = 5<<30 + 17 // bytes, more than 32 bits can count

// region is memory that takes none until it is touched.
func region(t *testing.T, n int) []byte {
	t.Helper()
	b, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
	if err != nil {
		skips.NotRun(t, fmt.Sprintf("there is no address space for %d bytes: %v", n, err), "ulimit -v unlimited")
	}
	t.Cleanup(func() { _ = syscall.Munmap(b) })
	return b
}

// moveHuge is move, but for the bytes of large payloads: only their number
// arrives.
func (p *pair) moveHuge(from int) (moved bool) {
	src, dst := p.e[from], p.e[1-from]
	for src.HasOutput(0) {
		out := src.Output(0)
		for _, b := range out {
			for len(b) > 0 {
				n := 0
				for _, in := range dst.Input(0) {
					k := min(len(in), len(b))
					if len(b) < 4<<10 {
						copy(in, b)
					}
					b = b[k:]
					n += k
				}
				if err := dst.Received(0, n); err != nil {
					p.tb.Fatal(err)
				}
			}
		}
		src.Sent(0, total(out))
		moved = true
	}
	return moved
}

func TestMessageOfMoreThan32Bits(t *testing.T) {
	out := region(t, huge)
	copy(out[huge-17:], "the very last end")
	for _, room := range []int{huge, 100} {
		p := newPair(t, Config{MaxData: 1 << 20, AckMark: 2, HiWater: 4})
		in := region(t, room)
		s := p.send(0, Standard, out)
		for p.moveHuge(0) {
		}
		if st, ok := p.e[1].Probe(Envelope{Rank: 0, Tag: 7}, 0); !ok || st.Len != huge {
			t.Fatalf("probed %+v, %v", st, ok)
		}
		r := p.recv(1, in)
		for p.moveHuge(1) || p.moveHuge(0) {
		}
		if !s.Done() || s.Err() != nil || !r.Done() || r.Status().Len != int64(room) {
			t.Fatalf("send %v %v, receive %v %+v", s.Done(), s.Err(), r.Done(), r.Status())
		}
		switch {
		case room < huge && !errors.Is(r.Err(), ErrTruncate):
			t.Errorf("%d bytes of room: %v", room, r.Err())
		case room == huge && (r.Err() != nil || string(in[huge-17:]) != "the very last end"):
			t.Errorf("%v, the end is %q", r.Err(), in[huge-17:])
		}
		if !p.e[0].Idle() || !p.e[1].Idle() {
			t.Error("something is left over")
		}
	}
}
