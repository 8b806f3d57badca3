package datatype

import (
	"math"
	"math/bits"
	"unsafe"
)

// half is an IEEE binary16 number: sign, 5 bits of exponent, and 10 of the fraction. Operations are
// done with floats, which have more than twice its digits, so that rounding the result is rounding
// once, but for products of complex numbers.
type half uint16

const (
	halfDropped = 23 - 10            // bits of a float's fraction that a half lacks
	halfBias    = (127 - 15) << 23   // difference of the exponents, in a float
	halfLeast   = (127 - 14) << 23   // the smallest normal half, as a float
	halfMost    = 0x477f_f000        // 65520 as a float: a half is infinite from here on
	halfInf     = 0x7c00             // infinity as a half
	halfNaN     = halfInf | 1<<9     // NaN as a half
	floatInf    = 0x7f80_0000        // infinity as a float
	halfUnit    = 1.0 / (1 << 24)    // the smallest half
	halfNumber  = math.MaxUint16 / 2 // bits of a half except the sign
)

func (h half) float() float32 {
	sign, rest := uint32(h&^halfNumber)<<16, uint32(h&halfNumber)
	switch {
	case rest >= halfInf:
		return math.Float32frombits(sign | floatInf | (rest&^halfInf)<<halfDropped)
	case rest < 1<<10:
		return float32(math.Copysign(float64(rest)*halfUnit, float64(math.Float32frombits(sign|floatInf))))
	}
	return math.Float32frombits(sign | (rest<<halfDropped + halfBias))
}

// halfOf rounds to nearest even (IEEE 754-2019, 4.3.1).
func halfOf(f float32) half {
	b := math.Float32bits(f)
	sign := half(b>>16) &^ halfNumber
	switch b &= math.MaxInt32; {
	case b > floatInf:
		return sign | halfNaN
	case b >= halfMost:
		return sign | halfInf
	case b < halfLeast:
		return sign | half(math.RoundToEven(math.Abs(float64(f))/halfUnit))
	}
	b += 1<<(halfDropped-1) - 1 + b>>halfDropped&1
	return sign | half((b-halfBias)>>halfDropped)
}

func halfArith(w which) loop {
	return over(func(in, inout []half) {
		for i, v := range in {
			if w == addition {
				inout[i] = halfOf(v.float() + inout[i].float())
			} else {
				inout[i] = halfOf(v.float() * inout[i].float())
			}
		}
	})
}

func halfComplexArith(w which) loop {
	return over(func(in, inout [][2]half) {
		for i, v := range in {
			a, b := complex(v[0].float(), v[1].float()), complex(inout[i][0].float(), inout[i][1].float())
			if w == addition {
				a += b
			} else {
				a *= b
			}
			inout[i] = [2]half{halfOf(real(a)), halfOf(imag(a))}
		}
	})
}

func halfExtreme(w which) loop {
	return over(func(in, inout []half) {
		for i, v := range in {
			if w == maxs {
				inout[i] = halfOf(max(v.float(), inout[i].float()))
			} else {
				inout[i] = halfOf(min(v.float(), inout[i].float()))
			}
		}
	})
}

// int128 is an integer of 128 bits as it is in memory: in the order of this host's bytes.
type int128 [2]uint64

func (x *int128) halves() (hi, lo uint64) {
	if hostBig {
		return x[0], x[1]
	}
	return x[1], x[0]
}

func (x *int128) set(hi, lo uint64) {
	*x = int128{lo, hi}
	if hostBig {
		*x = int128{hi, lo}
	}
}

func (x *int128) less(y *int128) bool {
	hi, lo := x.halves()
	yhi, ylo := y.halves()
	return int64(hi) < int64(yhi) || hi == yhi && lo < ylo
}

func (x *int128) isTrue() bool { return x[0]|x[1] != 0 }

func int128Arith(w which) loop {
	return over(func(in, inout []int128) {
		for i := range in {
			hi, lo := in[i].halves()
			yhi, ylo := inout[i].halves()
			if w == addition {
				sum, carry := bits.Add64(lo, ylo, 0)
				inout[i].set(hi+yhi+carry, sum)
				continue
			}
			top, low := bits.Mul64(lo, ylo)
			inout[i].set(top+hi*ylo+lo*yhi, low)
		}
	})
}

func int128Extreme(w which) loop {
	return over(func(in, inout []int128) {
		for i := range in {
			if w == maxs && inout[i].less(&in[i]) || w == mins && in[i].less(&inout[i]) {
				inout[i] = in[i]
			}
		}
	})
}

func int128Truth(w which) loop {
	return over(func(in, inout []int128) {
		for i := range in {
			a, b := in[i].isTrue(), inout[i].isTrue()
			one := w == lands && a && b || w == lors && (a || b) || w == lxors && a != b
			inout[i].set(0, 0)
			if one {
				inout[i].set(0, 1)
			}
		}
	})
}

func int128Bits(w which) loop {
	words := bitsOf[uint64](w)
	return func(in, inout unsafe.Pointer, n int) { words(in, inout, 2*n) }
}
