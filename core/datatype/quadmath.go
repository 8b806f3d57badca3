package datatype

import "math/bits"

// soft is a finite number that is not zero: mant times two to the power of
// exp-126, where bit 126 of mant is its highest.
type soft struct {
	neg    bool
	exp    int
	hi, lo uint64
}

const (
	quadBias = 16383
	quadNaN  = quadExp<<48 | quadQuietHi // of hi
)

func (q quad) neg() bool  { return q.hi&quadSign != 0 }
func (q quad) zero() bool { return q.hi&^quadSign|q.lo == 0 }
func (q quad) nan() bool  { return q.hi&^quadSign > quadExp<<48 || q.inf() && q.lo != 0 }

// inf also tells of NaNs whose upper fraction is zero; nan is asked first.
func (q quad) inf() bool     { return q.hi&^quadSign == quadExp<<48 }
func (q quad) negated() quad { return quad{q.hi ^ quadSign, q.lo} }

func signed(neg bool) uint64 {
	if neg {
		return quadSign
	}
	return 0
}

// unpack takes q apart, which is finite and not zero.
func (q quad) unpack() soft {
	s := soft{neg: q.neg(), exp: int(q.hi >> 48 & quadExp), hi: q.hi & quadFrac, lo: q.lo}
	if s.exp == 0 {
		s.exp = 1
	} else {
		s.hi |= 1 << 48
	}
	s.exp -= quadBias
	s.hi, s.lo = s.hi<<14|s.lo>>50, s.lo<<14
	return s.normal()
}

// normal moves the highest bit to where it belongs.
func (s soft) normal() soft {
	n := bits.LeadingZeros64(s.hi)
	if s.hi == 0 {
		n = 64 + bits.LeadingZeros64(s.lo)
	}
	if n == 0 {
		s.hi, s.lo = s.jam(1)
		s.exp++
		return s
	}
	up := uint(n - 1)
	if up >= 64 {
		s.hi, s.lo = s.lo<<(up-64), 0
	} else {
		s.hi, s.lo = s.hi<<up|s.lo>>(64-up), s.lo<<up
	}
	s.exp -= int(up)
	return s
}

// jam is the digits moved down n places; the lowest tells whether any fell out.
func (s soft) jam(n int) (hi, lo uint64) {
	var lost uint64
	switch {
	case n <= 0:
		return s.hi, s.lo
	case n < 64:
		lost = s.lo << (64 - uint(n))
		hi, lo = s.hi>>uint(n), s.hi<<(64-uint(n))|s.lo>>uint(n)
	case n < 128:
		lost = s.lo | s.hi<<(128-uint(n)) // at 64 the shift gives zero
		lo = s.hi >> uint(n-64)
	default:
		lost = s.hi | s.lo
	}
	if lost != 0 {
		lo |= 1
	}
	return hi, lo
}

// round makes a number of the given binary digits of s, to nearest even.
func (s soft) round(digits int) quad {
	exp := s.exp
	if low := 1 - quadBias; exp < low {
		s.hi, s.lo = s.jam(low - exp)
		exp = low
	}
	drop := uint(127 - digits) // 14 or 63
	rest, half := s.lo&(1<<drop-1), uint64(1)<<(drop-1)
	s.lo -= rest
	if rest > half || rest == half && s.lo>>drop&1 != 0 {
		var carry uint64
		s.lo, carry = bits.Add64(s.lo, 1<<drop, 0)
		s.hi += carry
		if s.hi>>63 != 0 {
			s.hi, s.lo = s.hi>>1, s.lo>>1|s.hi<<63
			exp++
		}
	}
	if exp > quadBias {
		return quad{hi: signed(s.neg) | quadExp<<48}
	}
	biased := uint64(exp + quadBias)
	if s.hi>>62 == 0 {
		biased = 0
	}
	return quad{hi: signed(s.neg) | biased<<48 | s.hi>>14&quadFrac, lo: s.lo>>14 | s.hi<<50}
}

// plus is a + b at the given digits.
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
	x, y := q.unpack(), b.unpack()
	if x.exp < y.exp {
		x, y = y, x
	}
	y.hi, y.lo = y.jam(x.exp - y.exp)
	var carry uint64
	if x.neg == y.neg {
		x.lo, carry = bits.Add64(x.lo, y.lo, 0)
		x.hi, _ = bits.Add64(x.hi, y.hi, carry)
		return x.normal().round(digits)
	}
	if x.hi < y.hi || x.hi == y.hi && x.lo < y.lo {
		x.neg, x.hi, x.lo, y.hi, y.lo = y.neg, y.hi, y.lo, x.hi, x.lo
	}
	x.lo, carry = bits.Sub64(x.lo, y.lo, 0)
	x.hi, _ = bits.Sub64(x.hi, y.hi, carry)
	if x.hi|x.lo == 0 {
		return quad{}
	}
	return x.normal().round(digits)
}

// by is a * b at the given digits.
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
	x, y := q.unpack(), b.unpack()
	// The product of 127 digits each has 253 or 254; the upper 128 of 256 have
	// their highest at 124 or 125, which makes the exponent two larger.
	hi, midA := bits.Mul64(x.hi, y.hi)
	ab, abLo := bits.Mul64(x.hi, y.lo)
	ba, baLo := bits.Mul64(x.lo, y.hi)
	low, lowest := bits.Mul64(x.lo, y.lo)
	low, c := bits.Add64(low, abLo, 0)
	mid, c := bits.Add64(midA, ab, c)
	hi += c
	low, c = bits.Add64(low, baLo, 0)
	mid, c = bits.Add64(mid, ba, c)
	hi += c
	if low|lowest != 0 {
		mid |= 1
	}
	return soft{neg: neg, exp: x.exp + y.exp + 2, hi: hi, lo: mid}.normal().round(digits)
}

// less compares numbers; no NaNs.
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
