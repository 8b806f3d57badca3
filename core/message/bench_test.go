package message

import (
	"testing"

	"github.com/openimpi/impi/core/wire"
)

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
