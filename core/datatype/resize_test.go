package datatype

import (
	"encoding/binary"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestDoublesAsFloats: doubles are rounded to nearest even, what no float is becomes an infinity or
// a zero, and what is no number stays none.
func TestDoublesAsFloats(t *testing.T) {
	const ulp = 1.0 / (1 << 23) // of a float from 1 to 2
	values := map[float64]float64{
		0: 0, 1: 1, -2.5: -2.5, 1.0 / 3: 0.3333333432674408, math.Pi: 3.1415927410125732, 1 << 24: 1 << 24, 1<<24 + 1: 1 << 24,
		1 + ulp: 1 + ulp, 1 + ulp/2: 1, 1 + 1.5*ulp: 1 + 2*ulp, 1 + ulp*0.5000001: 1 + ulp,
		math.MaxFloat32: math.MaxFloat32, math.MaxFloat32 * (1 + 1e-10): math.MaxFloat32, 3.5e38: math.Inf(1), -3.5e38: math.Inf(-1),
		math.MaxFloat64: math.Inf(1), -math.MaxFloat64: math.Inf(-1), math.Inf(1): math.Inf(1), math.Inf(-1): math.Inf(-1),
		math.SmallestNonzeroFloat32: math.SmallestNonzeroFloat32, 1e-46: 0, -1e-46: math.Copysign(0, -1), math.SmallestNonzeroFloat64: 0,
		math.Copysign(0, -1): math.Copysign(0, -1), 1e-40: float64(float32(1e-40)),
	}
	for in, want := range values {
		for _, k := range []Kind{Float64, Complex128} {
			src, back := []float64{in, 2}, make([]float64, 2)
			n := len(src) * 8 / k.Size()
			wire := make([]byte, n*NativeFloat.Size(k))
			if len(wire) != 8 {
				t.Fatalf("%v takes %d bytes", k, NativeFloat.Size(k))
			}
			if err := NativeFloat.Encode(wire, Bytes(src), k, n); err != nil {
				t.Fatal(err)
			}
			if got := math.Float32frombits(binary.LittleEndian.Uint32(wire)); math.Float32bits(got) != math.Float32bits(float32(want)) {
				t.Errorf("%v of %g travels as %g", k, in, got)
			}
			if err := NativeFloat.Decode(Bytes(back), wire, k, n); err != nil {
				t.Fatal(err)
			}
			if math.Float64bits(back[0]) != math.Float64bits(want) || back[1] != 2 {
				t.Errorf("%v of %g arrives as %g, want %g", k, in, back, want)
			}
		}
	}
	for _, bits := range []uint64{math.Float64bits(math.NaN()), 0x7ff0000000000001, 0xfff8000000000000, 0x7ff7ffffffffffff} {
		wire, back := make([]byte, 4), make([]float64, 1)
		src := []float64{math.Float64frombits(bits)}
		if err := NativeFloat.Encode(wire, Bytes(src), Float64, 1); err != nil {
			t.Fatal(err)
		}
		if err := NativeFloat.Decode(Bytes(back), wire, Float64, 1); err != nil || !math.IsNaN(back[0]) {
			t.Errorf("%x arrives as %g, %v", bits, back[0], err)
		}
	}
}

// TestRoundedOnce: what has been rounded is not changed any more, and is what a conversion to float
// gives.
func TestRoundedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := []float64{rapid.Float64().Draw(t, "x")}
		once, twice, wire := make([]float64, 1), make([]float64, 1), make([]byte, 4)
		for _, step := range [][2][]float64{{x, once}, {once, twice}} {
			if err := NativeFloat.Encode(wire, Bytes(step[0]), Float64, 1); err != nil {
				t.Fatal(err)
			}
			if err := NativeFloat.Decode(Bytes(step[1]), wire, Float64, 1); err != nil {
				t.Fatal(err)
			}
		}
		if want := float64(float32(x[0])); once[0] != want || twice[0] != want {
			t.Fatalf("%g becomes %g and then %g, want %g", x[0], once[0], twice[0], want)
		}
	})
}

// TestOnlyDoublesAreRounded: all other kinds are as in native-le.
func TestOnlyDoublesAreRounded(t *testing.T) {
	for _, k := range allKinds() {
		rounded := k == Float64 || k == Complex128
		if got := NativeFloat.Size(k) != NativeLE.Size(k); got != rounded {
			t.Errorf("%v takes %d bytes, and %d in native-le", k, NativeFloat.Size(k), NativeLE.Size(k))
		}
		if rounded {
			continue
		}
		src := pattern(k, 3)
		a, b := make([]byte, 3*NativeLE.Size(k)), make([]byte, 3*NativeLE.Size(k))
		if err := NativeLE.Encode(a, src, k, 3); err != nil {
			t.Fatal(err)
		}
		if err := NativeFloat.Encode(b, src, k, 3); err != nil || string(a) != string(b) {
			t.Errorf("%v: % x, and % x in native-le: %v", k, b, a, err)
		}
	}
	for r := range representations {
		if want := r != NativeFloat; (r.Exact() == r) != want || r.Exact().narrows(Float64) {
			t.Errorf("%v is exactly %v", r, r.Exact())
		}
	}
}
