package interpreter

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpi"
)

type element struct {
	kind datatype.Kind
	mask int64 // values are cut to it
	get  func(b []byte) int64
	set  func(b []byte, v int64)
}

var ne = binary.NativeEndian

var elements = map[string]element{
	"byte":   {datatype.Byte, 0xff, get8, set8},
	"char":   {datatype.Char, 0x7f, get8, set8},
	"short":  {datatype.Int16, 0x7fff, func(b []byte) int64 { return int64(int16(ne.Uint16(b))) }, set16},
	"ushort": {datatype.Uint16, 0x7fff, func(b []byte) int64 { return int64(ne.Uint16(b)) }, set16},
	"int":    {datatype.Int32, -1, func(b []byte) int64 { return int64(int32(ne.Uint32(b))) }, set32},
	"uint":   {datatype.Uint32, -1, func(b []byte) int64 { return int64(ne.Uint32(b)) }, set32},
	"long":   {datatype.Long, -1, getWord, setWord},
	"ulong":  {datatype.ULong, -1, getWord, setWord},
	"llong":  {datatype.Int64, -1, func(b []byte) int64 { return int64(ne.Uint64(b)) }, func(b []byte, v int64) { ne.PutUint64(b, uint64(v)) }},
	"float":  {datatype.Float32, 0x7fff, func(b []byte) int64 { return int64(math.Float32frombits(ne.Uint32(b))) }, func(b []byte, v int64) { ne.PutUint32(b, math.Float32bits(float32(v))) }},
	"double": {datatype.Float64, -1, func(b []byte) int64 { return int64(math.Float64frombits(ne.Uint64(b))) }, func(b []byte, v int64) { ne.PutUint64(b, math.Float64bits(float64(v))) }},
}

func get8(b []byte) int64     { return int64(b[0]) }
func set8(b []byte, v int64)  { b[0] = byte(v) }
func set16(b []byte, v int64) { ne.PutUint16(b, uint16(v)) }
func set32(b []byte, v int64) { ne.PutUint32(b, uint32(v)) }

func getWord(b []byte) int64 {
	if len(b) == 4 {
		return int64(int32(ne.Uint32(b)))
	}
	return int64(ne.Uint64(b))
}

func setWord(b []byte, v int64) {
	if len(b) == 4 {
		ne.PutUint32(b, uint32(v))
		return
	}
	ne.PutUint64(b, uint64(v))
}

func (e element) size() int { return e.kind.Size() }

type buffer struct {
	element
	n   int
	mem []byte
}

const maxBuffer = 1 << 30

func newBuffer(name string, n int) (*buffer, error) {
	e, ok := elements[name]
	switch {
	case !ok:
		return nil, fmt.Errorf("there is no type %q", name)
	case n < 0 || n > maxBuffer/e.size():
		return nil, fmt.Errorf("a buffer of %d elements", n)
	}
	return &buffer{e, n, make([]byte, n*e.size())}, nil
}

func (b *buffer) at(i int) []byte { return b.mem[i*b.size() : (i+1)*b.size()] }

func (e element) value(seed int64, i int) int64 {
	return (seed + 7*int64(i) + int64(i)/251) & e.mask
}

func (b *buffer) fill(seed int64) *buffer {
	for i := range b.n {
		b.set(b.at(i), b.value(seed, i))
	}
	return b
}

func (b *buffer) fillPairs(seed int64) *buffer {
	for i := range b.n {
		v := int64(10)
		if i%2 == 1 {
			v = seed
		}
		b.set(b.at(i), v)
	}
	return b
}

func (b *buffer) items() mpi.Buffer { return mpi.Typed(b.mem, b.n, datatype.Basic(b.kind)) }

func (b *buffer) tell(n int) string {
	h, first := uint64(14695981039346656037), []string{}
	for i := range min(n, b.n) {
		v := b.get(b.at(i))
		if i < 4 {
			first = append(first, fmt.Sprint(v))
		}
		for shift := 56; shift >= 0; shift -= 8 {
			h = (h ^ uint64(v)>>shift&0xff) * 1099511628211
		}
	}
	return fmt.Sprintf(" hash=%016x first=%s", h, strings.Join(first, ","))
}
