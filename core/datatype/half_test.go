package datatype

import (
	"math"
	"testing"
)

// halfValue is the value of a half, by the definition of binary16.
func halfValue(h half) float64 {
	frac, exp := float64(h&0x3ff), int(h>>10&0x1f)
	v := math.Ldexp(1024+frac, exp-25)
	switch {
	case exp == 0:
		v = math.Ldexp(frac, -24)
	case exp == 31 && frac != 0:
		return math.NaN()
	case exp == 31:
		v = math.Inf(1)
	}
	if h>>15 != 0 {
		return -v
	}
	return v
}

func TestHalf(t *testing.T) {
	for h := range half(0xffff) {
		v, f := halfValue(h), h.float()
		if math.IsNaN(v) {
			if f == f || halfOf(f)&halfNumber <= halfInf || halfOf(f)>>15 != h>>15 {
				t.Fatalf("%#x is no number: %v, %#x", h, f, halfOf(f))
			}
			continue
		}
		if float64(f) != v || math.Signbit(float64(f)) != math.Signbit(v) || halfOf(f) != h {
			t.Fatalf("%#x is %v: %v, %#x", h, v, f, halfOf(f))
		}
		if h&halfNumber >= halfInf-1 {
			continue
		}
		// Between it and the next one: the middle goes to the even one, what is beside it to the nearer.
		middle := float32((v + halfValue(h+1)) / 2)
		even := h + h&1
		below, above := math.Nextafter32(middle, float32(v)), math.Nextafter32(middle, float32(halfValue(h+1)))
		if halfOf(middle) != even || halfOf(below) != h || halfOf(above) != h+1 {
			t.Fatalf("beside %#x: %#x, %#x, %#x", h, halfOf(below), halfOf(middle), halfOf(above))
		}
	}
	for f, want := range map[float32]half{65519.996: 0x7bff, 65520: halfInf, -1e30: 0x8000 | halfInf, 1e-30: 0, float32(math.Inf(-1)): 0x8000 | halfInf} {
		if got := halfOf(f); got != want {
			t.Errorf("%v: %#x, want %#x", f, got, want)
		}
	}
}

func TestHalfOperations(t *testing.T) {
	nan := half(0xfe01)
	for _, c := range []struct {
		op         *Op
		kind       Kind
		a, b, want []half
	}{
		{Sum, Float16, []half{halfOf(1.5), halfOf(60000)}, []half{halfOf(2), halfOf(60000)}, []half{halfOf(3.5), halfInf}},
		{Prod, Float16, []half{halfOf(1.5), halfOf(-0.25)}, []half{halfOf(2), halfOf(8)}, []half{halfOf(3), halfOf(-2)}},
		{Max, Float16, []half{halfOf(1.5), nan}, []half{halfOf(2), halfOf(8)}, []half{halfOf(2), halfNaN}},
		{Min, Float16, []half{halfOf(1.5), halfOf(9)}, []half{halfOf(2), halfOf(-8)}, []half{halfOf(1.5), halfOf(-8)}},
		{Sum, Complex32, []half{halfOf(1), halfOf(2)}, []half{halfOf(3), halfOf(-1)}, []half{halfOf(4), halfOf(1)}},
		{Prod, Complex32, []half{halfOf(1), halfOf(2)}, []half{halfOf(3), halfOf(-1)}, []half{halfOf(5), halfOf(5)}},
	} {
		a, b := make([]byte, 4), make([]byte, 4)
		copy(View[uint16](a), []uint16{uint16(c.a[0]), uint16(c.a[1])})
		copy(View[uint16](b), []uint16{uint16(c.b[0]), uint16(c.b[1])})
		if err := c.op.Apply(a, b, c.kind, 4/c.kind.Size()); err != nil {
			t.Fatal(err)
		}
		for i, got := range View[uint16](b) {
			w := c.want[i]
			if half(got) != w && !(w == halfNaN && half(got)&halfNumber > halfInf) {
				t.Errorf("%v of %v, component %d: %#x, want %#x", c.op, c.kind, i, got, w)
			}
		}
	}
}
