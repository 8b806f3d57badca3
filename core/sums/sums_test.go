package sums

import (
	"testing"
	"unsafe"
)

// check compares a loop with Go's addition, for vectors of all lengths up to several rounds of it
// and with each alignment that elements have, and sees that nothing around the vectors is changed.
func check[T int32 | int64 | float32 | float64](t *testing.T, loop Loop) {
	t.Helper()
	if loop == nil {
		return // Go's own loop is used
	}
	for n := range 70 {
		for from := range 4 {
			in, inout, want := make([]T, n+8), make([]T, n+8), make([]T, n+8)
			for i := range in {
				in[i], inout[i] = T(3*i-50)/4, T(i*i)-1000
				want[i] = inout[i]
				if i >= from && i < from+n {
					want[i] += in[i]
				}
			}
			loop(unsafe.Pointer(&in[from]), unsafe.Pointer(&inout[from]), n)
			for i := range want {
				if inout[i] != want[i] || in[i] != T(3*i-50)/4 {
					t.Fatalf("%T: %d elements from %d: element %d is %v, want %v", want[i], n, from, i, inout[i], want[i])
				}
			}
		}
	}
}

func TestLoops(t *testing.T) {
	check[float32](t, Floats(4))
	check[float64](t, Floats(8))
	check[int32](t, Integers(4))
	check[int64](t, Integers(8))
	if Floats(2) != nil || Floats(16) != nil || Integers(1) != nil || Integers(2) != nil {
		t.Error("there is a loop for elements of another size")
	}
}
