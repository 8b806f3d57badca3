package datatype

import "math/big"

const (
	quadBias   = 16383
	quadLow    = 1 - quadBias              // exponent of the smallest normal number
	quadDigits = 113                       // binary digits, with the highest
	quadNaN    = quadExp<<48 | quadQuietHi // value of hi
)

func (q quad) neg() bool  { return q.hi&quadSign != 0 }
func (q quad) zero() bool { return q.hi&^quadSign|q.lo == 0 }
func (q quad) nan() bool  { return q.hi&^quadSign > quadExp<<48 || q.inf() && q.lo != 0 }

// inf is also true for NaNs whose upper fraction is zero; callers check nan first.
func (q quad) inf() bool     { return q.hi&^quadSign == quadExp<<48 }
func (q quad) negated() quad { return quad{q.hi ^ quadSign, q.lo} }

func signed(neg bool) uint64 {
	if neg {
		return quadSign
	}
	return 0
}

// exponent returns the exponent of the highest digit for normal numbers, and quadLow for
// others.
func (q quad) exponent() int { return max(int(q.hi>>48&quadExp)-quadBias, quadLow) }

// big returns the exact value of q, which is finite.
func (q quad) big() *big.Float {
	mant := new(big.Int).Lsh(new(big.Int).SetUint64(q.hi&quadFrac), 64)
	mant.Add(mant, new(big.Int).SetUint64(q.lo))
	if q.hi>>48&quadExp != 0 {
		mant.SetBit(mant, quadDigits-1, 1)
	}
	f := new(big.Float).SetInt(mant)
	f.SetMantExp(f, q.exponent()-(quadDigits-1))
	if q.neg() {
		f.Neg(f)
	}
	return f
}

// roundQuad rounds a number that is not zero to the given binary digits, to nearest even.
// Numbers below the normal ones have fewer digits.
func roundQuad(x *big.Float, digits int) quad {
	q := quad{hi: signed(x.Signbit())}
	digits -= max(0, quadLow-(x.MantExp(nil)-1))
	x = new(big.Float).Abs(x)
	switch up := x.MantExp(nil); {
	case digits > 0:
		x.SetPrec(uint(digits))
	case digits < 0 || x.Cmp(new(big.Float).SetMantExp(big.NewFloat(1), up-1)) == 0:
		return q // x is at most half of the smallest number
	default:
		x.SetMantExp(big.NewFloat(1), up)
	}
	exp := x.MantExp(nil) - 1
	if exp > quadBias {
		q.hi |= quadExp << 48
		return q
	}
	mant, _ := new(big.Float).SetMantExp(x, quadDigits-1-max(exp, quadLow)).Int(nil)
	if exp >= quadLow {
		q.hi |= uint64(exp+quadBias) << 48
	}
	q.lo = new(big.Int).And(mant, new(big.Int).SetUint64(1<<64-1)).Uint64()
	q.hi |= new(big.Int).Rsh(mant, 64).Uint64() & quadFrac
	return q
}

// plus returns a + b, rounded to the given digits.
func (q quad) plus(b quad, digits int) quad {
	switch {
	case q.nan() || b.nan() || q.inf() && b.inf() && q.neg() != b.neg():
		return quad{hi: quadNaN}
	case q.inf() || b.zero() && !q.zero():
		return q
	case b.inf() || q.zero() && !b.zero():
		return b
	case q.zero():
		return quad{hi: q.hi & b.hi}
	}
	x, y := q.big(), b.big()
	if x.MantExp(nil) < y.MantExp(nil) {
		x, y = y, x
	}
	// If y is far below the last digit of x only its sign matters.
	const far = 2*quadDigits + 8
	if low := x.MantExp(nil) - far; y.MantExp(nil) < low {
		y.SetMantExp(big.NewFloat(float64(y.Sign())), low)
	}
	sum := new(big.Float).SetPrec(far+2*quadDigits).Add(x, y)
	if sum.Sign() == 0 {
		return quad{}
	}
	return roundQuad(sum, digits)
}

func (q quad) by(b quad, digits int) quad {
	neg := q.neg() != b.neg()
	switch {
	case q.nan() || b.nan() || q.inf() && b.zero() || q.zero() && b.inf():
		return quad{hi: quadNaN}
	case q.inf() || b.inf():
		return quad{hi: signed(neg) | quadExp<<48}
	case q.zero() || b.zero():
		return quad{hi: signed(neg)}
	}
	return roundQuad(new(big.Float).SetPrec(2*quadDigits).Mul(q.big(), b.big()), digits)
}

func (q quad) less(b quad) bool {
	if q.zero() && b.zero() {
		return false
	}
	if q.neg() != b.neg() {
		return q.neg()
	}
	smaller := q.hi < b.hi || q.hi == b.hi && q.lo < b.lo
	return q != b && smaller != q.neg()
}
