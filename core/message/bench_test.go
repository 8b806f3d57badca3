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
	procs := []wire.Proc{{PID: 1}, {PID: 2}}
	p := &pair{tb: tb}
	for i := range p.e {
		c := cfg
		c.Self, c.Procs = Peer(i), procs
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

func BenchmarkPingPong(b *testing.B) {
	for _, bc := range []struct {
		name string
		n    int
		mode Mode
		late bool
	}{
		{"8", 8, Standard, false},
		{"8/unexpected", 8, Standard, true},
		{"8/synchronous", 8, Synchronous, false},
		{"1K", 1024, Standard, false},
		{"64K", 64 << 10, Standard, false},
		{"256K", 256 << 10, Standard, false},
	} {
		b.Run(bc.name, func(b *testing.B) {
			p := newPair(b, Config{MaxData: 65536, AckMark: 64, HiWater: 256})
			data, buf := make([]byte, bc.n), make([]byte, bc.n)
			env := Envelope{Tag: 7}
			b.ReportAllocs()
			b.SetBytes(int64(bc.n))
			for i := 0; b.Loop(); i++ {
				src, dst := p.e[i&1], p.e[1-i&1]
				env.Rank = wire.CommRank(i & 1)
				var r *Request
				if !bc.late {
					r = dst.Recv(env, Peer(i&1), buf)
				}
				s := src.Send(Peer(1-i&1), env, bc.mode, data, 1, 0)
				p.move(i & 1)
				if bc.late {
					r = dst.Recv(env, Peer(i&1), buf)
				}
				if !r.Done() || !s.Done() {
					p.settle()
				}
				if !r.Done() || !s.Done() {
					b.Fatal("not done")
				}
				src.Release(s)
				dst.Release(r)
			}
		})
	}
}
