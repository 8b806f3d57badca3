package links

import (
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/wireup"
)

func TestSaved(t *testing.T) {
	for want, c := range map[string][2]uint64{
		"nothing yet": {0, 0},
		"48.0 MB went as 12.0 MB (4.0 to 1, 36.0 MB saved)": {48e6, 12e6},
		"1.00 kB went as 1.00 kB (1.0 to 1, 0 B saved)":     {1000, 1000},
		"100 B went as 108 B (8 B more)":                    {100, 108},
	} {
		if got := CompressionText(c[0], c[1]); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestCompressedOf: all ends count, each once, whether a node tells of pairs or of hosts.
func TestCompressedOf(t *testing.T) {
	x := func(n uint64) *wireup.CompressedBytes {
		return &wireup.CompressedBytes{Sent: 10 * n, Received: 20 * n, SentCompressed: n, ReceivedCompressed: 2 * n}
	}
	pairs := []Pair{{Views: []View{{Traffic: &Traffic{Compressed: x(1)}}, {Traffic: &Traffic{}}}}, {Views: []View{{}, {Traffic: &Traffic{Compressed: x(2)}}}}}
	for name, c := range map[string]struct {
		job  Job
		want uint64 // 0: nil
	}{
		"nothing":  {Job{Pairs: []Pair{{Views: []View{{}}}}, Channels: []Channel{{}}, ByHost: []HostCounts{{}}}, 0},
		"pairs":    {Job{Pairs: pairs}, 3},
		"channels": {Job{Pairs: pairs, Channels: []Channel{{}, {Compressed: x(5)}}}, 8},
		"hosts":    {Job{Pairs: pairs, ByHost: []HostCounts{{Compressed: x(1)}, {}, {Compressed: x(8)}}}, 9},
	} {
		got := CompressedBytesOf(&c.job)
		if c.want == 0 && got != nil || c.want > 0 && (got == nil || *got != *x(c.want)) {
			t.Errorf("%s: %+v, want that of %d", name, got, c.want)
		}
	}
}

func TestCompressionIsExplained(t *testing.T) {
	p := Pair{A: 1, B: 2, Views: []View{
		{Local: 1, Compress: "zstd, level 1, from 4096 bytes", Traffic: &Traffic{Compressed: &wireup.CompressedBytes{Sent: 2000, SentCompressed: 500}}, Rounds: true},
		{Local: 2, NoCompress: "tcp is too fast", Exact: "it is not wanted"},
	}}
	var b strings.Builder
	p.compression(&b)
	for _, want := range []string{
		"compressed by rank 1: zstd, level 1, from 4096 bytes; 2.00 kB went as 500 B (4.0 to 1, 1.50 kB saved)\n",
		"not compressed by rank 2: tcp is too fast\n",
		"doubles in messages travel as floats\n",
		"doubles do not travel as floats from rank 2: it is not wanted\n",
	} {
		if !strings.Contains(b.String(), "    "+want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
