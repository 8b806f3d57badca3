package resumable

import (
	"testing"
	"time"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/link/linktest"
)

// BenchmarkShort is what a resumable link adds to a packet of 136 bytes: compare it
// with the link below alone.
func BenchmarkShort(b *testing.B) {
	x, y := linktest.Pair(1 << 16)
	for name, ends := range map[string][2]link.Link{"below": {x, y}, "resumable": resumablePair(b)} {
		b.Run(name, func(b *testing.B) {
			head, out, in := make([]byte, 128), make([]byte, 8), make([]byte, 4096)
			b.ReportAllocs()
			for b.Loop() {
				ends[0].Send([][]byte{head, out})
				ends[1].Recv([][]byte{in})
				ends[1].Recv([][]byte{in})
				ends[1].Send([][]byte{head, out})
				ends[0].Recv([][]byte{in})
				ends[0].Recv([][]byte{in})
			}
		})
	}
}

func resumablePair(t testing.TB) [2]link.Link {
	a := New(Config{Session: [16]byte{1}, Dialler: true})
	b := New(Config{Session: [16]byte{1}})
	x, y := linktest.Pair(1 << 16)
	a.Start(x, time.Now())
	b.Start(y, time.Now())
	a.Pump()
	b.Pump()
	if a.AwaitsHello() || b.AwaitsHello() {
		t.Fatal("not connected")
	}
	return [2]link.Link{a, b}
}
