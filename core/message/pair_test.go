package message

import (
	"testing"

	"github.com/openimpi/impi/core/wire"
)

// pair is two engines joined by a pipe of bytes.
type pair struct {
	tb testing.TB
	e  [2]*Engine
}

func newPair(tb testing.TB, cfg Config) *pair {
	directory := directoryOf(tb, wire.Proc{PID: 1}, wire.Proc{PID: 2})
	p := &pair{tb: tb}
	for i := range p.e {
		c := cfg
		c.Self, c.Directory = Peer(i), directory
		e, err := New(c)
		if err != nil {
			tb.Fatal(err)
		}
		e.AttachPeer(0, Peer(1-i))
		e.SetRoute(Peer(1-i), 0)
		p.e[i] = e
	}
	return p
}

// move carries everything there is from one engine to the other.
func (p *pair) move(from int) (moved bool) {
	src, dst := p.e[from], p.e[1-from]
	for src.HasOutput(0) {
		out := src.Output(0)
		if len(out) == 0 {
			break
		}
		sent := 0
		for _, b := range out {
			for len(b) > 0 {
				n := 0
				for _, in := range dst.Input(0) {
					k := copy(in, b)
					b = b[k:]
					n += k
				}
				if err := dst.Received(0, n); err != nil {
					p.tb.Fatal(err)
				}
				sent += n
			}
		}
		src.Sent(0, sent)
		moved = true
	}
	return moved
}

func (p *pair) settle() {
	for p.move(0) || p.move(1) {
	}
}

// send and recv use context 0, tag 7 and the ranks of the pair.
func (p *pair) send(from int, mode Mode, data []byte) *Request {
	return p.e[from].Send(Peer(1-from), Envelope{Rank: wire.CommRank(from), Tag: 7}, mode, data, 1, 0)
}

func (p *pair) recv(at int, buf []byte) *Request {
	return p.e[at].Recv(Envelope{Rank: wire.CommRank(1 - at), Tag: 7}, Peer(1-at), buf)
}

// total is the bytes of a batch.
func total(batch [][]byte) (n int) {
	for _, b := range batch {
		n += len(b)
	}
	return n
}

// same reports whether a and b begin at the same byte of memory.
func same(a, b []byte) bool { return len(a) > 0 && len(b) > 0 && &a[0] == &b[0] }
