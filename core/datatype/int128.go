package datatype

import (
	"math/bits"
	"unsafe"
)

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
