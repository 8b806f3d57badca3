// Package fileview computes where the data of a file view lie in the file. The items of a datatype
// follow each other in the file from a displacement on, and the view has the bytes that their
// elements cover. For collective accesses the package says who reads or writes which part, and
// gathers and scatters the data. A Counter is a file pointer that procs share.
package fileview

import (
	"errors"
	"fmt"
	"math"

	"github.com/openimpi/impi/core/datatype"
)

// The faults of views.
var (
	// ErrType means datatypes that no view can be made of.
	ErrType = errors.New("invalid datatype of a view")
	// ErrOffset means an offset before the file, or too far.
	ErrOffset = errors.New("invalid offset in a file")
)

// maxSeries is the most series of runs that an item may consist of. It bounds the memory that a
// program can make us use.
const maxSeries = 1 << 22

// Extent is a run of Len bytes of a file that begins at Off.
type Extent struct{ Off, Len int64 }

// View is the part of a file that a process can access. The zero value has no bytes; Bytes returns
// a view of the whole file.
type View struct {
	disp int64
	unit int64 // bytes of one etype item, the unit of offsets
	tile int64 // bytes from one item of the file type to the next
	item List  // the data of one item, from its origin on
	only int64 // if not 0, bytes of the first item: only that may be accessed
}

// Bytes returns the view that a file has when it is opened: all its bytes, with offsets in bytes
// (MPI-4.1, 14.2.1).
func Bytes() *View { return contiguous(0, 1) }

func contiguous(disp, unit int64) *View {
	const all = 1 << 62
	v := &View{disp: disp, unit: unit, tile: all}
	v.item.Add(Series{0, all, all, 1})
	return v
}

// New makes the view of items of ftype from disp on, whose offsets count items of
// etype.
func New(disp int64, etype, ftype *datatype.Type) (*View, error) {
	unit, data, tile := etype.Size(), ftype.Size(), ftype.Extent()
	switch {
	case disp < 0:
		return nil, fmt.Errorf("%w: displacement %d", ErrOffset, disp)
	case unit <= 0 || data <= 0 || data%unit != 0:
		return nil, fmt.Errorf("%w: a file type of %d bytes of data in items of %d", ErrType, data, unit)
	case ftype.TrueLB() < 0:
		return nil, fmt.Errorf("%w: its items begin before the file", ErrType)
	}
	var only int64
	if tile < ftype.TrueExtent() { // HDF5 makes such types, and uses one item
		tile, only = 1<<62, data
	}
	if at, ok := ftype.Run(1); ok && tile == data {
		return contiguous(disp+at, unit), nil
	}
	v := &View{disp: disp, unit: unit, tile: tile, only: only}
	var err error
	datatype.Blocks(ftype, func(at, n, stride, count int64) bool {
		err = v.item.add(Series{at, n, stride, count})
		return err == nil
	})
	switch {
	case err != nil:
		return nil, err
	case v.item.Len() != data:
		return nil, fmt.Errorf("%w: an item has padding", ErrType)
	}
	return v, nil
}

// Gaps reports whether there are bytes between the data of the view.
func (v *View) Gaps() bool { return len(v.item.series) > 1 || v.item.Len() != v.tile }

// Unit returns the size in bytes of the items that offsets count.
func (v *View) Unit() int64 { return v.unit }

// At returns where the item at an offset, in items, lies in the file.
func (v *View) At(offset int64) (int64, error) {
	pos, err := v.Position(offset)
	if err != nil {
		return 0, err
	}
	l := v.Runs(pos, 1)
	return l.First(), nil
}

// Position returns how many bytes of data are before an offset, in items.
func (v *View) Position(offset int64) (int64, error) {
	if offset < 0 || offset > (1<<62)/v.unit {
		return 0, fmt.Errorf("%w: %d", ErrOffset, offset)
	}
	return offset * v.unit, nil
}

// Check returns an error unless the n bytes of data after the first pos ones may be accessed. If
// the extent of the file type is less than its items span, so that items overlap, only the first
// item may be accessed.
func (v *View) Check(pos, n int64) error {
	if v.only > 0 && (pos > v.only || n > v.only-pos) {
		return fmt.Errorf("%w: its items overlap, as its extent is less than they span: of the first item, which has %d bytes, bytes %d to %d are wanted", ErrType, v.only, pos, pos+n)
	}
	return nil
}

// maxRuns is about how many series of runs Step lets Runs return at once.
const maxRuns = 1 << 18

// Step returns the largest number of bytes of data that Runs should be asked for, so that lists of
// small pieces stay small.
func (v *View) Step() int64 {
	n := int64(len(v.item.series))
	if n == 1 && v.item.series[0].N == 1 {
		return math.MaxInt64
	}
	return max(v.item.Len()/n, 1) * maxRuns
}

// Runs returns where the n bytes of data after the first pos ones lie in the file.
func (v *View) Runs(pos, n int64) (l List) {
	data := v.item.Len()
	item, rest := pos/data, pos%data
	one := len(v.item.series) == 1 && v.item.series[0].N == 1
	if !one {
		l.grow(int(min((n/data+1)*int64(len(v.item.series)), maxRuns)))
	}
	for n > 0 {
		at := v.disp + item*v.tile
		if rest > 0 || n < data {
			m := min(n, data-rest)
			v.item.slice(rest, m, func(s Series) { l.Add(s.moved(at)) })
			n, rest, item = n-m, 0, item+1
			continue
		}
		whole := n / data
		if one { // all of them are one series
			s := v.item.series[0].moved(at)
			s.Stride, s.N = v.tile, whole
			l.Add(s)
		} else {
			whole = 1
			for _, s := range v.item.series {
				l.Add(s.moved(at))
			}
		}
		n, item = n-whole*data, item+whole
	}
	return l
}

// Before returns the number of bytes of data that lie before byte end of the file. If the file has
// end bytes, that is the end of its data.
func (v *View) Before(end int64) int64 {
	end -= v.disp
	if end <= 0 {
		return 0
	}
	return end/v.tile*v.item.Len() + v.item.Before(end%v.tile)
}
