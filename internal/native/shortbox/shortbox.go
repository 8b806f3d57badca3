// Package shortbox defines the memory by which package native and its C code (shorts.c) share the
// short messages of a rank. It is a package of its own so that the generator of C's header
// (internal/abi/layout), which needs it, has no C code in it.
package shortbox

import (
	"sync/atomic"
	"unsafe"

	"github.com/openimpi/impi/plugins/sdk/link"
)

const (
	Pieces   = 5                                        // of a message at most
	MinPiece = link.MaxCarried / 2                      // bytes of data in a piece; each library says whether it has longer ones (struct impi_native in shim.h)
	Place    = Pieces * 4096                            // bytes for the data of one message
	Area     = link.FastBoxCount * Place                // bytes for the data of all messages
	Box      = link.FastBoxPageSize / link.FastBoxCount // bytes of a box
	Envelope = 32                                       // bytes of what comes before a message's data
	Lag      = 32                                       // messages that a proc which sends none has taken when it tells the sender
)

// Boxes are the short messages to and from one rank. They are in memory of their own, not in Go's.
type Boxes struct {
	Read   atomic.Uint64 // how many of the sent messages the other proc has taken
	Told   atomic.Uint64 // how many of the received ones were taken; written now and then
	Bytes  atomic.Uint64 // bytes of the stream that have come
	Sleeps atomic.Uint32 // stays 0: nothing wakes the other proc
	Rank   int32
	Come   uint64         // how many messages have come
	Said   uint32         // of how many taken messages the other proc knows
	Closed uint32         // not 0: what comes is dropped
	All    unsafe.Pointer // what is common to all ranks
	Sent   uint32         // how many messages were sent
	Knows  [2]uint8       // not 0: Last has a message
	_      [2]uint8

	// Rest is how many bytes of the next message are still to come, RestAt its place in the stream.
	Rest, RestAt uint32
	Base         uint64                 // Come, when all messages had been taken
	Last         [2]link.CarriedMessage // the last message that was sent, and the last that has come
	In           link.FastBoxPage
	Data         [Area]byte
}
