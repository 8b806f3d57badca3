package ring

import (
	"unsafe"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/support/ntcopy"
)

// A box that is about to be written is still in the cache of the core that has read it, so that the
// store waits for that core, and so does everything after it. These functions fetch cache lines
// earlier, while the program does something else. A wrong guess costs some nanoseconds.

const (
	// inFirstLine is how many bytes of data are in the first line of a box.
	inFirstLine = 32
	// lineSize is the size of a line of the cache.
	lineSize = 64
)

// inTwoLines reports whether a message with n bytes of data is in both lines of its box.
func inTwoLines(n int) bool { return n > inFirstLine && n <= link.InFastBox }

// inSeries reports whether none was received since the last one was posted. Like prepareAnswer it
// guesses by a count of the other direction, which another goroutine may change meanwhile: a count
// is one word, so that an old one is read at worst.
//
//go:norace
func (b *boxes) inSeries() bool {
	taken := b.fastBoxes.Taken
	if b.answered == taken {
		return true
	}
	b.answered = taken
	return false
}

// prepareNext is called after a message of n bytes was posted and none was received since the one
// before: a series. It has the box after the next one fetched. The next one is left alone, since
// the reader polls it.
func (b *boxes) prepareNext(n int) {
	s := b.fastBoxes
	box := unsafe.Pointer(&s.Out[(s.Sent+1)%link.FastBoxCount])
	ntcopy.Claim(box)
	if inTwoLines(n) {
		ntcopy.Claim(unsafe.Add(box, lineSize))
	}
}

// prepareAnswer is called when a program that waits for a message gets it, which it probably
// answers.
//
//go:norace
func (b *boxes) prepareAnswer() {
	ntcopy.Claim(unsafe.Pointer(&b.fastBoxes.Out[b.fastBoxes.Sent%link.FastBoxCount]))
}

// prepareSecond is called before a message in two lines is written, so that both are fetched at the
// same time.
func (b *boxes) prepareSecond() {
	ntcopy.Claim(unsafe.Add(unsafe.Pointer(&b.fastBoxes.Out[b.fastBoxes.Sent%link.FastBoxCount]), lineSize))
}

// expectSecond is called when the first line of the next message is polled, if the last message was
// in two, so that both come at the same time.
func (b *boxes) expectSecond() {
	ntcopy.Fetch(unsafe.Add(unsafe.Pointer(&b.fastBoxes.In[b.fastBoxes.Taken%link.FastBoxCount]), lineSize))
}

// expect is called after a message was taken: in a series one of those that follow is there
// already.
func (b *boxes) expect() {
	ntcopy.Fetch(unsafe.Pointer(&b.fastBoxes.In[(b.fastBoxes.Taken+2)%link.FastBoxCount]))
}
