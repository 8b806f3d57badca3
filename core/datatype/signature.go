package datatype

import (
	"fmt"
	"math/bits"
	"strings"
)

// signature identifies a sequence of kinds, which MPI calls type signature (MPI-4.1, 5.1): its
// length and a polynomial hash, which can be computed from those of parts without enumerating the
// kinds.
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

func (a signature) then(b signature) signature {
	return signature{len: a.len + b.len, hash: reduceHash(mulHash(a.hash, b.pow) + b.hash), pow: mulHash(a.pow, b.pow)}
}

var emptySignature = signature{pow: 1}

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

// Signature identifies the sequence of basic elements of a message, so that sender and receiver can
// be compared (MPI-4.1, 3.3.1). Different sequences have the same signature with a probability of
// about one in 10^18.
type Signature struct {
	Len  int64  // elements; a pair counts once
	Hash uint64 // anyHash matches every sequence
}

// anyHash is the hash of data that matches everything: packed data (MPI-4.1, 3.3.1).
const anyHash = 1<<64 - 1

// Signature returns the signature of a message of count items of t. It takes time for log(count)
// steps, not for each element.
func (t *Type) Signature(count int) Signature {
	d := defOf(t)
	return d.signatureOf(d.sig.times(int64(count)))
}

// Prefix returns the signature of the first n elements of count items of t; false if they have
// fewer.
//
// MPI requires that the elements sent are a prefix of those that the receive names (MPI-4.1,
// 5.1.11).
func (t *Type) Prefix(count int, n int64) (Signature, bool) {
	d := defOf(t)
	if d.sig.len == 0 || n > 0 && (n-1)/d.sig.len >= int64(count) {
		return Signature{}, n == 0
	}
	return d.signatureOf(d.first(n)), true
}

// Matches reports whether messages with the signatures s and o may match.
func (s Signature) Matches(o Signature) bool {
	return s == o || s.Any() || o.Any()
}

// marked is set in the Bits of all signatures.
const marked = 1 << 63

// Bits returns the Hash as 64 bits of which the highest is set, so that it differs from
// every Kind.
func (s Signature) Bits() uint64 { return s.Hash | marked }

// SignatureOf is the inverse of Bits, for n elements. It returns false if bits do not come from a
// signature.
func SignatureOf(n int64, bits uint64) (Signature, bool) {
	if bits&marked == 0 {
		return Signature{}, false
	}
	if bits != anyHash {
		bits &^= marked
	}
	return Signature{Len: n, Hash: bits}, true
}

// Any reports whether s matches all sequences.
func (s Signature) Any() bool { return s.Hash == anyHash }

// String describes the elements, as far as they can be found from the hash.
func (s Signature) String() string {
	switch {
	case s.Any():
		return fmt.Sprintf("%d bytes of packed data", s.Len)
	case s.Len == 0:
		return "nothing"
	case s.Len > 0:
		for k := Byte; k.Valid(); k++ {
			if kindSignature(k).times(s.Len).hash == s.Hash {
				return fmt.Sprintf("%d x %v", s.Len, k)
			}
		}
	}
	return fmt.Sprintf("%d elements of several types", s.Len)
}

const listed = 8

// Sequence describes the elements of count items of t for people.
func (t *Type) Sequence(count int) string {
	d := defOf(t)
	all := d.sig.times(int64(count))
	if s := d.signatureOf(all).String(); !strings.HasSuffix(s, "several types") {
		return s
	}
	var names []string
	for i := range min(all.len, listed) {
		before, after := d.first(i), d.first(i+1)
		for k := Byte; k.Valid(); k++ {
			if before.then(kindSignature(k)).hash == after.hash {
				names = append(names, k.String())
				break
			}
		}
	}
	s := strings.Join(names, ", ")
	if all.len > listed {
		s += fmt.Sprintf(" and so on, %d in all", all.len)
	}
	return s
}

// first returns the signature of the first n elements of a row of items of d.
func (d *def) first(n int64) signature {
	return d.sig.times(n / d.sig.len).then(d.prefix(n % d.sig.len))
}

func (d *def) signatureOf(s signature) Signature {
	if d.kinds == 1<<Packed {
		return Signature{Len: s.len, Hash: anyHash}
	}
	return Signature{Len: s.len, Hash: s.hash}
}

func (d *def) prefix(n int64) signature {
	if n == 0 {
		return emptySignature
	}
	switch d.form {
	case formBasic:
		return d.sig
	case formStruct:
		s := emptySignature
		for i, child := range d.children {
			items := d.items(i)
			if n <= items*child.sig.len && items > 0 {
				return s.then(child.sig.times(n / child.sig.len)).then(child.prefix(n % child.sig.len))
			}
			n -= items * child.sig.len
			s = s.then(child.sig.times(items))
		}
		return s
	default:
		return d.child.sig.times(n / d.child.sig.len).then(d.child.prefix(n % d.child.sig.len))
	}
}
