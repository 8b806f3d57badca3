package compress_test

import (
	"testing"

	"github.com/openimpi/impi/core/compress"
	"github.com/openimpi/impi/internal/zstd"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/link/linktest"
	"github.com/openimpi/impi/plugins/sdk/support/memory"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

// TestConformance: a compressed link keeps the contract of links.
func TestConformance(t *testing.T) {
	codec, err := zstd.New(1)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ capacity, least int }{"wide": {1 << 20, 1}, "narrow": {6000, 1}, "long ones": {1 << 20, 64 << 10}} {
		t.Run(name, func(t *testing.T) {
			transporttest.Run(t, func(*testing.T) transporttest.Harness {
				pair := func() (a, b link.Link) {
					x, y := linktest.Pair(c.capacity)
					return compress.New(x, compress.Config{Codec: codec, Min: c.least}), compress.New(y, compress.Config{Codec: codec, Min: c.least})
				}
				return transporttest.Harness{Transport: memory.New(pair), Listen: transports.ListenSpec{Name: "here"}, Large: 4 << 20, InProcess: true}
			})
		})
	}
}
