package datatype

import "math/bits"

// signature identifies a sequence of kinds: how many there are and a polynomial
// hash of them, which can be put together from the parts' without enumerating.
type signature struct {
	len  int64
	hash uint64
	pow  uint64 // hashBase to the power of len
}

// Hashes are modulo the prime 2^61-1.
const (
	hashPrime = 1<<61 - 1
	hashBase  = 0x0b9d_37a1_c8e4_5f63
)

func mulHash(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return reduceHash(lo&hashPrime + (lo>>61 | hi<<3))
}

func reduceHash(x uint64) uint64 {
	x = x&hashPrime + x>>61
	if x >= hashPrime {
		x -= hashPrime
	}
	return x
}

// then is the signature of the sequence of a and behind it that of b.
func (a signature) then(b signature) signature {
	return signature{len: a.len + b.len, hash: reduceHash(mulHash(a.hash, b.pow) + b.hash), pow: mulHash(a.pow, b.pow)}
}

var emptySignature = signature{pow: 1}

// times is n of a's sequences one after the other.
func (a signature) times(n int64) signature {
	s := emptySignature
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			s = s.then(a)
		}
		if n > 1 {
			a = a.then(a)
		}
	}
	return s
}

func kindSignature(k Kind) signature {
	return signature{len: 1, hash: mulHash(uint64(k)+1, 0x1234_5678_9abc_def1), pow: hashBase}
}
