package rma

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/openimpi/impi/core/datatype"
)

// Extent is the size of one proc's window in bytes, and its unit of displacements.
type Extent struct {
	Size int64
	Unit int64
}

// Locate returns the offset in bytes, in the window, of the first of count items of t at
// displacement disp (MPI-4.1, 12.3.1). If they are not all inside the window the error is ErrRange.
func (x Extent) Locate(disp int64, count int64, t *datatype.Type) (off int64, err error) {
	lo, hi, err := span(count, t)
	if err != nil {
		return 0, err
	}
	if lo == hi {
		return 0, nil
	}
	high, low := bits.Mul64(uint64(disp), uint64(x.Unit))
	if disp < 0 || high != 0 || low > math.MaxInt64 {
		return 0, fmt.Errorf("%w: it has %d bytes in units of %d, and unit %d was asked for", ErrRange, x.Size, x.Unit, disp)
	}
	off = int64(low)
	if lo < -off || hi > x.Size-off {
		return 0, fmt.Errorf("%w: it has %d bytes, and bytes %d to %d from byte %d on were asked for", ErrRange, x.Size, lo, hi, off)
	}
	return off, nil
}

// maxStream is the most bytes that the items of one operation may take when they are sent.
const maxStream = 1 << 62

// span is t.Span for a count that another process has sent. It also checks that the items
// can be sent in every representation: items that overlap may take many more bytes then
// than in memory.
func span(count int64, t *datatype.Type) (lo, hi int64, err error) {
	if count < 0 || int64(int(count)) != count {
		return 0, 0, fmt.Errorf("%w: %d", datatype.ErrCount, count)
	}
	item := max(t.Packed(datatype.Native), t.Packed(datatype.External32), t.Packed(datatype.NativeLE))
	if high, low := bits.Mul64(uint64(count), uint64(item)); high != 0 || low > maxStream {
		return 0, 0, fmt.Errorf("%w: %d items of %v", datatype.ErrTooLarge, count, t)
	}
	return t.Span(int(count))
}

// Check returns an error for a count and a datatype that are wrong for any window.
func Check(count int64, t *datatype.Type) error {
	_, _, err := span(count, t)
	return err
}
