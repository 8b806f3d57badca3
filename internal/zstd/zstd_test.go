package zstd

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/openimpi/impi/core/compress"
	"github.com/openimpi/impi/internal/allocs"
)

// data are bytes of some length, the first part of which can be compressed.
func data(n int, part float64) []byte {
	r := rand.New(rand.NewPCG(uint64(n), 1))
	b := make([]byte, n)
	for i := range b {
		if b[i] = byte(i / 100); float64(i) >= part*float64(n) {
			b[i] = byte(r.Uint32())
		}
	}
	return b
}

func TestCodec(t *testing.T) {
	for _, level := range []int{MinLevel, 3, 7, MaxLevel} {
		c, err := New(level)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{2, 3, 1000, 128 << 10, compress.MaxCompressed} {
			for _, part := range []float64{0, 0.5, 1} {
				in := data(n, part)
				packed := c.Compress([]byte("head"), in)
				if !bytes.HasPrefix(packed, []byte("head")) || part == 1 && n >= 1000 && len(packed) > n/10 {
					t.Errorf("level %d: %d bytes become %d", level, n, len(packed))
				}
				out := make([]byte, n)
				if err := c.Decompress(out, packed[4:]); err != nil || !bytes.Equal(out, in) {
					t.Errorf("level %d, %d bytes: %v", level, n, err)
				}
				for _, wrong := range []int{n - 1, n + 1} {
					if err := c.Decompress(make([]byte, wrong), packed[4:]); err == nil {
						t.Errorf("level %d: %d bytes are taken for %d", level, n, wrong)
					}
				}
			}
		}
		if again, _ := New(level); again != c {
			t.Errorf("level %d is made twice", level)
		}
	}
	for _, level := range []int{MinLevel - 1, MaxLevel + 1} {
		if c, err := New(level); err == nil || c != nil {
			t.Errorf("level %d: %v", level, err)
		}
	}
}

// TestChanged: each byte that is changed on the way is noticed.
func TestChanged(t *testing.T) {
	c, err := New(1)
	if err != nil {
		t.Fatal(err)
	}
	in := data(3000, 0.9)
	packed, out := c.Compress(nil, in), make([]byte, len(in))
	for i := range packed {
		packed[i] ^= 0x10
		if err := c.Decompress(out, packed); err == nil && !bytes.Equal(out, in) {
			t.Errorf("with byte %d of %d changed", i, len(packed))
		}
		packed[i] ^= 0x10
	}
}

// TestBombs: what would become large is refused without the memory for it.
func TestBombs(t *testing.T) {
	c, err := New(1)
	if err != nil {
		t.Fatal(err)
	}
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(8<<20))
	if err != nil {
		t.Fatal(err)
	}
	bomb := w.EncodeAll(make([]byte, 256<<20), nil)
	var streamed bytes.Buffer // says no size
	s, err := zstd.NewWriter(&streamed, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(8<<20))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(make([]byte, 64<<20)); err != nil || s.Close() != nil {
		t.Fatal(err)
	}
	_ = c.Decompress(make([]byte, 10), c.Compress(nil, make([]byte, 10))) // the memory that stays
	for name, b := range map[string][]byte{"with its size": bomb, "without": streamed.Bytes()} {
		out := make([]byte, 1000)
		var err error
		if used := allocs.BytesExact(func() { err = c.Decompress(out, b) }); err == nil || used > 4<<20 {
			t.Errorf("%s: %v, %d bytes were allocated", name, err, used)
		}
	}
}

func TestErrorsSayWho(t *testing.T) {
	c, err := New(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range [][]byte{nil, []byte("no such thing"), c.Compress(nil, make([]byte, 500))} {
		if err := c.Decompress(make([]byte, 501), b); err == nil || !strings.HasPrefix(err.Error(), "zstd: ") {
			t.Errorf("%x: %v", b, err)
		}
	}
}

// FuzzDecompress: no bytes make it panic, or take more memory than a frame needs.
func FuzzDecompress(f *testing.F) {
	c, err := New(1)
	if err != nil {
		f.Fatal(err)
	}
	for _, n := range []int{0, 10, 5000, 100_000} {
		f.Add(c.Compress(nil, data(n, 0.5)), n)
	}
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		out := make([]byte, uint(n)%compress.MaxCompressed+1)
		if used := allocs.Bytes(func() { err = c.Decompress(out, b) }); used > 8<<20+allocs.MaxError {
			t.Errorf("%d bytes were allocated for %d: %v", used, len(out), err)
		}
	})
}

func BenchmarkCompress(b *testing.B) {
	for name, part := range map[string]float64{"even": 1, "half": 0.5, "random": 0} {
		b.Run(name, func(b *testing.B) {
			c, err := New(1)
			if err != nil {
				b.Fatal(err)
			}
			in, out := data(128<<10, part), make([]byte, 0, 192<<10)
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				out = c.Compress(out[:0], in)
			}
			b.ReportMetric(float64(len(in))/float64(len(out)), "ratio")
		})
	}
}
