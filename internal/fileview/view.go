// Package fileview says where the data of a view of a file lie: a view shows those
// bytes of a file that the items of a datatype, one after the other from a
// displacement on, stand for. A Counter is the pointer that procs share.
package fileview

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/openimpi/impi/core/datatype"
)

// The faults of views.
var (
	// ErrType means datatypes that no view can be made of.
	ErrType = errors.New("invalid datatype of a view")
	// ErrOffset means an offset before the file, or too far.
	ErrOffset = errors.New("invalid offset in a file")
)

// MaxTile is the longest extent that an item with gaps can have, in bytes: what is
// in it is found out by laying it out in memory.
const MaxTile = 1 << 30

// Extent is a run of bytes.
type Extent struct{ Off, Len int64 }

// View is what a process sees of a file. The zero value sees nothing; Bytes is all
// of a file.
type View struct {
	disp   int64
	unit   int64    // bytes of an item of what offsets count
	tile   int64    // bytes from one item of the file type to the next
	data   int64    // bytes of data in it
	pieces []Extent // of it, in order; from is where their data begin
	from   []int64
}

// Bytes is the view of all bytes.
func Bytes() *View { return contiguous(0, 1) }

// contiguous is a view without gaps.
func contiguous(disp, unit int64) *View {
	const all = 1 << 62
	return &View{disp: disp, unit: unit, tile: all, data: all, pieces: []Extent{{0, all}}, from: []int64{0}}
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
	case ftype.TrueLB() < 0 || tile < ftype.TrueExtent():
		return nil, fmt.Errorf("%w: its items overlap, or begin before the file", ErrType)
	}
	if at, ok := ftype.Run(1); ok && tile == data {
		return contiguous(disp+at, unit), nil
	}
	pieces, err := layOut(ftype)
	if err != nil {
		return nil, err
	}
	v := &View{disp: disp, unit: unit, tile: tile, data: data, pieces: pieces}
	var sum int64
	for _, p := range pieces {
		v.from = append(v.from, sum)
		sum += p.Len
	}
	if sum != data {
		return nil, fmt.Errorf("%w: parts of an item overlap", ErrType)
	}
	return v, nil
}

// layOut finds the bytes of an item: it writes ones to all of them.
func layOut(t *datatype.Type) ([]Extent, error) {
	lb, n := t.TrueLB(), t.TrueExtent()
	if n > MaxTile {
		return nil, fmt.Errorf("%w: an item with gaps spans %d bytes, at most %d", ErrType, n, MaxTile)
	}
	memory := make([]byte, n)
	ones := make([]byte, t.Packed(datatype.Native))
	for i := range ones {
		ones[i] = 1
	}
	base := uintptr(unsafe.Pointer(unsafe.SliceData(memory))) - uintptr(lb)
	t.Unpack(*(*unsafe.Pointer)(unsafe.Pointer(&base)), 1, 0, ones)
	var pieces []Extent
	for i := int64(0); i < n; i++ {
		if memory[i] == 0 {
			continue
		}
		start := i
		for i < n && memory[i] != 0 {
			i++
		}
		pieces = append(pieces, Extent{lb + start, i - start})
	}
	return pieces, nil
}

// Unit is the bytes of what offsets count.
func (v *View) Unit() int64 { return v.unit }

// At returns where the item at an offset, in items, lies in the file.
func (v *View) At(offset int64) (int64, error) {
	pos, err := v.Position(offset)
	if err != nil {
		return 0, err
	}
	at := int64(0)
	for x := range v.Extents(pos, 1) {
		at = x.Off
	}
	return at, nil
}

// Position returns how many bytes of data are before an offset, in items.
func (v *View) Position(offset int64) (int64, error) {
	if offset < 0 || offset > (1<<62)/v.unit {
		return 0, fmt.Errorf("%w: %d", ErrOffset, offset)
	}
	return offset * v.unit, nil
}

// Extents returns the runs of bytes of n bytes of data behind the first pos ones.
func (v *View) Extents(pos, n int64) func(yield func(Extent) bool) {
	return func(yield func(Extent) bool) {
		item, rest := pos/v.data, pos%v.data
		i := v.find(rest)
		for n > 0 {
			skip := rest - v.from[i]
			x := Extent{v.disp + item*v.tile + v.pieces[i].Off + skip, min(n, v.pieces[i].Len-skip)}
			if !yield(x) {
				return
			}
			n, rest = n-x.Len, rest+x.Len
			if i++; i == len(v.pieces) {
				i, rest, item = 0, 0, item+1
			}
		}
	}
}

// find returns the piece that has byte rest of the data.
func (v *View) find(rest int64) int {
	lo, hi := 0, len(v.from)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; v.from[mid] <= rest {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// Before returns how many bytes of data lie before byte end of the file: where its
// data end if it has that many bytes.
func (v *View) Before(end int64) int64 {
	end -= v.disp
	if end <= 0 {
		return 0
	}
	items := end / v.tile
	pos, rest := items*v.data, end%v.tile
	for i, p := range v.pieces {
		if p.Off >= rest {
			return pos + v.from[i]
		}
		if p.Off+p.Len > rest {
			return pos + v.from[i] + rest - p.Off
		}
	}
	return pos + v.data
}
