package protocol

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
}

// kinds are all that the interpreter has.
var kinds = []kind{
	{"byte", 1, 0xff, false}, {"char", 1, 0x7f, false}, {"short", 2, 0x7fff, false}, {"ushort", 2, 0x7fff, false},
	{"int", 4, -1, false}, {"uint", 4, -1, false}, {"long", 4, -1, false}, {"ulong", 4, -1, false},
	{"llong", 8, -1, false}, {"float", 4, 0x7fff, true}, {"double", 8, -1, true},
}

// kindOf finds a type by its name.
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

// values are the first n of them.
func (k kind) values(seed, n int) []int64 {
	v := make([]int64, n)
	for i := range v {
		v[i] = k.value(seed, i)
	}
	return v
}

// encode gives elements as they travel.
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
		b = append(b, binary.BigEndian.AppendUint64(nil, bits)[8-k.width:]...)
	}
	return b
}

// pattern gives n elements of the seed as they travel.
func (k kind) pattern(seed, n int) []byte { return k.encode(k.values(seed, n)) }

// bytesOf is pattern for bytes.
func bytesOf(seed, n int) []byte { return kindOf("byte").pattern(seed, n) }

// hashOf is what the interpreter tells of elements that it has.
func hashOf(values []int64) string {
	h := uint64(14695981039346656037)
	for _, v := range values {
		for _, b := range binary.BigEndian.AppendUint64(nil, uint64(v)) {
			h = (h ^ uint64(b)) * 1099511628211
		}
	}
	return fmt.Sprintf("%016x", h)
}

// holds checks that the reply tells of exactly these elements.
func (a answers) holds(values []int64) {
	if got := a.values["hash"]; got != hashOf(values) {
		a.t.Fatalf("the program has other data than the %d elements %s: %s", len(values), firstOf(values), a.text)
	}
}

// received checks the status and the data of a receive.
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
