package compress

import (
	"errors"
	"testing"

	"github.com/openimpi/impi/internal/allocs"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/link/linktest"
)

// FuzzInput: whatever a peer sends, in whatever pieces, there is no panic, no more memory than two
// frames take, and an error that has a name. The first byte says how the rest is cut.
func FuzzInput(f *testing.F) {
	add := func(cut byte, frames ...[]byte) {
		all := []byte{cut}
		for _, b := range frames {
			all = append(all, b...)
		}
		f.Add(all)
	}
	whole := func(f frame, body []byte) []byte {
		b := make([]byte, headerSize)
		f.put(b)
		return append(b, body...)
	}
	packed := new(deflate).Compress(nil, even(1000))
	plain := whole(frame{false, 3, 3}, []byte("abc"))
	add(0, plain, whole(frame{true, 1000, len(packed)}, packed), plain)
	add(7, whole(frame{true, MaxCompressed, MaxCompressed - 1}, packed))
	add(3, whole(frame{false, MaxPlain, MaxPlain}, packed), plain)
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 {
			return
		}
		x, y := linktest.Pair(1 << 20)
		l := New(y, Config{nothing{}, 1})
		if b[0]&1 != 0 {
			l = New(y, Config{new(deflate), 1})
		}
		size := 1 + int(b[0]>>1)*int(b[0]>>1)
		var err error
		room := make([]byte, 3000)
		used := allocs.Bytes(func() {
			for b = b[1:]; len(b) > 0 && err == nil; b = b[min(size, len(b)):] {
				x.Send([][]byte{b[:min(size, len(b))]})
				for n := 1; n > 0 && err == nil; {
					n, err = l.Recv([][]byte{room})
				}
			}
		})
		if err != nil && (!errors.Is(err, ErrFrame) || !errors.Is(err, link.ErrBroken)) {
			t.Errorf("an error without a name: %v", err)
		}
		if len(l.in.buf) > MaxCompressed+first || len(l.in.memory) > MaxCompressed || used > 64<<20+allocs.MaxError {
			t.Errorf("memory of %d and %d bytes, %d in all", len(l.in.buf), len(l.in.memory), used)
		}
	})
}
