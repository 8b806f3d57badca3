package play

import (
	"encoding/binary"
	"fmt"
	"math"
)

// kind is a type of elements as the interpreter names it, with its external32 form.
type kind struct {
	name  string
	width int   // bytes on the wire
	mask  int64 // values are cut to it
	float bool

	// little means that elements are sent as they are in the memory of most machines. It is for
	// implementations that are known to do so, in all chapters except the one about data.
	little bool
}

var kinds = []kind{
	{name: "byte", width: 1, mask: 0xff}, {name: "char", width: 1, mask: 0x7f},
	{name: "short", width: 2, mask: 0x7fff}, {name: "ushort", width: 2, mask: 0x7fff},
	{name: "int", width: 4, mask: -1}, {name: "uint", width: 4, mask: -1}, {name: "long", width: 4, mask: -1}, {name: "ulong", width: 4, mask: -1},
	{name: "llong", width: 8, mask: -1}, {name: "float", width: 4, mask: 0x7fff, float: true}, {name: "double", width: 8, mask: -1, float: true},
}

// kindOf finds a type whose elements travel as the run's options say, unless the case is about
// that.
func (t *T) kindOf(name string) kind {
	k := kindOf(name)
	k.little = t.data == NativeLittle && t.Case.Chapter != "data"
	return k
}

func kindOf(name string) kind {
	for _, k := range kinds {
		if k.name == name {
			return k
		}
	}
	panic("protocol: no type " + name)
}

// value is the i-th element that the interpreter sends for a seed.
func (k kind) value(seed, i int) int64 { return (int64(seed) + 7*int64(i) + int64(i)/251) & k.mask }

// values are the first n elements for a seed.
func (k kind) values(seed, n int) []int64 {
	v := make([]int64, n)
	for i := range v {
		v[i] = k.value(seed, i)
	}
	return v
}

func (k kind) encode(values []int64) []byte {
	b := make([]byte, 0, len(values)*k.width)
	for _, v := range values {
		bits := uint64(v)
		switch {
		case k.float && k.width == 4:
			bits = uint64(math.Float32bits(float32(v)))
		case k.float:
			bits = math.Float64bits(float64(v))
		}
		if k.little {
			b = append(b, binary.LittleEndian.AppendUint64(nil, bits)[:k.width]...)
			continue
		}
		b = append(b, binary.BigEndian.AppendUint64(nil, bits)[8-k.width:]...)
	}
	return b
}

func (k kind) pattern(seed, n int) []byte { return k.encode(k.values(seed, n)) }

func bytesOf(seed, n int) []byte { return kindOf("byte").pattern(seed, n) }

// hashOf is the hash that the interpreter reports for elements that it has.
func hashOf(values []int64) string {
	h := uint64(14695981039346656037)
	for _, v := range values {
		for _, b := range binary.BigEndian.AppendUint64(nil, uint64(v)) {
			h = (h ^ uint64(b)) * 1099511628211
		}
	}
	return fmt.Sprintf("%016x", h)
}

func (a answers) holds(values []int64) {
	if got := a.values["hash"]; got != hashOf(values) {
		a.t.Fatalf("the program has other data than the %d elements %s: %s", len(values), firstOf(values), a.text)
	}
}

func (a answers) received(source *proc, tag int32, seed, n int) {
	a.is("source", source.rank)
	a.is("tag", tag)
	a.is("count", n)
	a.holds(kindOf("byte").values(seed, n))
}

func firstOf(v []int64) string {
	if len(v) > 4 {
		return fmt.Sprint(v[:4]) + "..."
	}
	return fmt.Sprint(v)
}
