// Package match pairs messages with receives (IMPI ch.3, Message Matching): it has the
// posted and the unexpected queue of one proc.
//
// Both queues keep MPI's order and find their entries in a constant number of steps,
// however long they are. A receive is of one of four classes, as it names the source, the
// tag, both or neither. Receives of one class with equal patterns wait in one list; a
// message looks at the heads of at most four lists and takes the oldest. In the other
// direction, a message waits in one list of each class that was ever asked for. Short
// queues, which most programs have, are searched linearly.
//
// Entries are embedded in what waits, so that nothing is allocated for them.
package match

import (
	"math/bits"

	"github.com/openimpi/impi/core/wire"
)

// The wildcards of a pattern, MPI_ANY_SOURCE and MPI_ANY_TAG (MPI-4.1, 3.2.4). In a message's key
// the same values have no special meaning: no valid message has them, and a message that has them
// matches no exact pattern.
const (
	AnySource wire.CommRank = -1
	AnyTag    wire.Tag      = -1
)

// Key is the key of a message, or the pattern of a receive.
type Key struct {
	Context wire.ContextID
	Source  wire.CommRank
	Tag     wire.Tag
}

// class says which parts of a pattern are wildcards.
type class uint8

const (
	anySource class = 1 << iota
	anyTag
	exact   class = 0
	classes       = 4
)

func (k Key) class() (c class) {
	if k.Source == AnySource {
		c |= anySource
	}
	if k.Tag == AnyTag {
		c |= anyTag
	}
	return c
}

// as returns the key without the parts that a pattern of class c ignores.
func (k Key) as(c class) Key {
	if c&anySource != 0 {
		k.Source = AnySource
	}
	if c&anyTag != 0 {
		k.Tag = AnyTag
	}
	return k
}

// admits reports whether pattern k, which is of class c, matches message m.
// IMPI ch.3, Message Matching: context ID, the sender's rank in the communicator, tag.
func (k *Key) admits(c class, m *Key) bool {
	return k.Context == m.Context &&
		(k.Source == m.Source || c&anySource != 0) &&
		(k.Tag == m.Tag || c&anyTag != 0)
}

func (k Key) hash(c class) uint32 {
	a := uint64(k.Context) ^ 0x9e3779b97f4a7c15 + uint64(c)<<56
	b := uint64(uint32(k.Source))<<32 | uint64(uint32(k.Tag))
	hi, lo := bits.Mul64(a, b^0xd6e8feb86659fd93)
	hi, lo = bits.Mul64(hi^lo^b, 0xa0761d6478bd642f)
	return uint32((hi ^ lo) >> 16)
}
