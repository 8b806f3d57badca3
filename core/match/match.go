// Package match pairs messages with receives: the posted and the unexpected
// queue of one proc.
package match

import "github.com/openimpi/impi/core/wire"

// The wildcards of a pattern.
const (
	AnySource wire.CommRank = -1
	AnyTag    wire.Tag      = -1
)

// Entry is a place in a queue, embedded in whatever waits there.
type Entry[V any] struct {
	Value V
}
