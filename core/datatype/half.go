package datatype

import "math"

// half is an IEEE binary16 number: sign, 5 bits of exponent, and 10 of the fraction. Operations are done
// with floats, which have more than twice its digits, so that rounding the result is rounding once.
type half uint16

const (
	halfDropped = 23 - 10            // bits of a float's fraction that a half lacks
	halfBias    = (127 - 15) << 23   // of a float, what the exponents differ by
	halfLeast   = (127 - 14) << 23   // of a float, the smallest normal half
	halfMost    = 0x477f_f000        // of a float, 65520, from which on a half is infinite
	halfInf     = 0x7c00             // of a half
	halfNaN     = halfInf | 1<<9     // of a half
	floatInf    = 0x7f80_0000        // of a float
	halfUnit    = 1.0 / (1 << 24)    // the smallest half
	halfNumber  = math.MaxUint16 / 2 // of a half, all but the sign
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
