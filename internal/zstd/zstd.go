// Package zstd is the codec of compressed links (core/compress) by github.com/klauspost/compress.
package zstd

import (
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/openimpi/impi/core/compress"
)

// The levels that a codec may have, as the tool zstd counts them. The library has four that differ:
// 1 to 2, 3 to 5, 6 to 9, and 10 on.
const (
	MinLevel = 1
	MaxLevel = 19
)

// window is the smallest window that a whole frame of a compressed link fits into.
const window = 256 << 10

// Codec compresses at one level. All links of a process share one Codec of each level.
type Codec struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

var codecs struct {
	sync.Mutex
	byLevel map[zstd.EncoderLevel]*Codec
}

// New returns the codec of a level, which is created if it is the first one of the process. A frame
// has a checksum, so that a frame that was changed on the way is an error.
func New(level int) (*Codec, error) {
	if level < MinLevel || level > MaxLevel {
		return nil, fmt.Errorf("zstd: level %d is not one of %d to %d", level, MinLevel, MaxLevel)
	}
	l := zstd.EncoderLevelFromZstd(level)
	codecs.Lock()
	defer codecs.Unlock()
	if c := codecs.byLevel[l]; c != nil {
		return c, nil
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(l), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window),
		zstd.WithSingleSegment(true), zstd.WithEncoderCRC(true), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("zstd: level %d: %w", level, err)
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(window), zstd.WithDecoderMaxWindow(window), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	c := &Codec{encoder: encoder, decoder: decoder}
	if codecs.byLevel == nil {
		codecs.byLevel = make(map[zstd.EncoderLevel]*Codec)
	}
	codecs.byLevel[l] = c
	return c, nil
}

// Compress implements compress.Codec. It makes one frame of zstd, with a checksum.
func (c *Codec) Compress(dst, src []byte) []byte { return c.encoder.EncodeAll(src, dst) }

// Decompress implements compress.Codec.
func (c *Codec) Decompress(dst, src []byte) error {
	got, err := c.decoder.DecodeAll(src, dst[:0:len(dst)])
	switch {
	case err != nil:
		return fmt.Errorf("zstd: %w", err)
	case len(got) != len(dst):
		return fmt.Errorf("zstd: it gives %d bytes", len(got))
	}
	return nil
}

var _ compress.Codec = (*Codec)(nil)
