package resume

import (
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/link/linktest"
)

// network makes underlying links that move any number of bytes at a time, and
// damages bytes on request.
type network struct {
	rt      *rapid.T
	damage  bool // the next bytes that come
	cables  []*linktest.End
	waiting []*arriving
}

type arriving struct {
	l link.Link
	Arrival
}

func (n *network) dial(capacity int) link.Link {
	a, b := linktest.Pair(capacity)
	n.cables = append(n.cables, a.(*linktest.End))
	n.waiting = append(n.waiting, &arriving{l: n.wrap(b)})
	return n.wrap(a)
}

func (n *network) wrap(l link.Link) link.Link {
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(n.rt, "chops"), 0))
	most := 1 + rng.IntN(90)
	return &damaged{linktest.Chop(l, func() int { return rng.IntN(most + 1) }), n}
}

// damaged changes a byte of what comes.
type damaged struct {
	link.Link
	n *network
}

func (d *damaged) Recv(batch [][]byte) (int, error) {
	n, err := d.Link.Recv(batch)
	for _, b := range batch {
		if n > 0 && len(b) > 0 && d.n.damage {
			d.n.damage = false
			b[0] ^= 0x10
		}
	}
	return n, err
}

// both is a pair of ends, their users' knowledge and the driver in between.
type both struct {
	*network
	ends [2]*Link
	sent [2]int  // bytes that each user has sent
	got  [2]int  // and received
	end  [2]bool // io.EOF seen
	caps int
}

// drive does what drivers do: dial when needed, accept what has come.
func (b *both) drive() {
	if s := b.ends[0].Status(); s.State == Detached {
		if err := b.ends[0].Dial(b.dial(b.caps)); err != nil {
			b.rt.Fatal(err)
		}
	}
	left := b.waiting[:0]
	for _, w := range b.waiting {
		h, ok, err := w.Read(w.l)
		if err == nil && !ok {
			left = append(left, w)
			continue
		}
		if err == nil {
			err = b.ends[1].Accept(w.l, h)
		}
		if err != nil {
			w.l.Close()
		}
	}
	b.waiting = left
	for _, l := range b.ends {
		l.Pump()
	}
}

func (b *both) send(side, n int) {
	buf := make([]byte, n)
	for i := range buf {
		buf[i] = byte((b.sent[side] + i) * (7 + side))
	}
	k, err := b.ends[side].Send([][]byte{buf[:n/3], buf[n/3:]})
	if err != nil && !errors.Is(err, link.ErrClosed) {
		b.rt.Fatalf("Send: %v", err)
	}
	clear(buf)
	b.sent[side] += k
}

func (b *both) recv(side, n int) {
	buf := make([]byte, n)
	k, err := b.ends[side].Recv([][]byte{buf[:n/2], buf[n/2:]})
	for i, c := range buf[:k] {
		if want := byte((b.got[side] + i) * (7 + 1 - side)); c != want {
			b.rt.Fatalf("byte %d is %#x, not %#x", b.got[side]+i, c, want)
		}
	}
	b.got[side] += k
	switch {
	case err == io.EOF:
		b.end[side] = true
	case err != nil || b.end[side]:
		b.rt.Fatalf("Recv: %v, end seen %t", err, b.end[side])
	}
}

// Whatever is cut, chopped, damaged, delayed and dialled once more: two streams,
// all of both, once.
func TestRandomRuns(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		config := Config{
			Window:   rapid.IntRange(1, 200).Draw(rt, "window"),
			Ack:      rapid.IntRange(0, 250).Draw(rt, "ack"),
			Frame:    rapid.IntRange(0, 60).Draw(rt, "frame"),
			Checksum: rapid.Bool().Draw(rt, "checksum"),
		}
		b := &both{network: &network{rt: rt}, caps: rapid.IntRange(1, 300).Draw(rt, "capacity")}
		b.ends[1] = New(config)
		config.Dialler = true
		config.Window = rapid.IntRange(1, 200).Draw(rt, "dialler's window")
		b.ends[0] = New(config)
		side := func() int { return rapid.IntRange(0, 1).Draw(rt, "side") }
		rt.Repeat(map[string]func(*rapid.T){
			"send":  func(rt *rapid.T) { b.send(side(), rapid.IntRange(0, 300).Draw(rt, "bytes")) },
			"recv":  func(rt *rapid.T) { b.recv(side(), rapid.IntRange(1, 300).Draw(rt, "room")) },
			"drive": func(*rapid.T) { b.drive() },
			"pump":  func(*rapid.T) { b.ends[side()].Pump() },
			"end":   func(*rapid.T) { b.ends[side()].CloseSend() },
			"cut": func(*rapid.T) {
				if n := len(b.cables); n > 0 {
					b.cables[n-1].Break(errors.New("cut"))
				}
			},
			"dial again": func(*rapid.T) { b.ends[0].Dial(b.dial(b.caps)) },
			"damage":     func(*rapid.T) { b.damage = config.Checksum },
		})
		b.finish()
	})
}

// finish lets everything arrive.
func (b *both) finish() {
	for range 100_000 {
		b.damage = false
		for side, l := range b.ends {
			l.CloseSend()
			b.recv(side, 100)
		}
		b.drive()
		a, c := b.ends[0].Status(), b.ends[1].Status()
		switch {
		case a.State == Done && c.State == Done && b.end[0] && b.end[1]:
			if b.got[0] != b.sent[1] || b.got[1] != b.sent[0] {
				b.rt.Fatalf("%d sent and %d received, %d sent and %d received", b.sent[0], b.got[1], b.sent[1], b.got[0])
			}
			return
		case a.State == Done && c.State == Detached: // see the package's comment, End
			b.ends[0].Dial(b.dial(b.caps))
		}
	}
	b.rt.Fatalf("no end: %+v, %+v", b.ends[0].Status(), b.ends[1].Status())
}
