package ring

import (
	"unsafe"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/support/ntcopy"
)

// A box that is about to be written is still in the cache of the core that has read it, so that the store
// waits for that core, and so does all that comes after it. These functions have lines fetched before, while
// the program does something else. What they guess wrong costs some nanoseconds.

const (
	// inFirstLine is how many bytes of data are in the first line of a box.
	inFirstLine = 32
	// lineSize is the size of a line of the cache.
	lineSize = 64
)

// inTwoLines reports whether a message with n bytes of data is in both lines of its box.
func inTwoLines(n int) bool { return n > inFirstLine && n <= link.InFastBox }

// prepareNext is called after a message of n bytes was posted. In a series, of which nobody answers one by
// one, it has the box after the next one fetched. The next one is left alone, since the reader polls it.
func (b *boxes) prepareNext(n int) {
	s := b.fastBoxes
	if b.answered != s.Taken {
		b.answered = s.Taken
		return
	}
	box := unsafe.Pointer(&s.Out[(s.Sent+1)%link.FastBoxCount])
	ntcopy.Claim(box)
	if inTwoLines(n) {
		ntcopy.Claim(unsafe.Add(box, lineSize))
	}
}

// prepareAnswer is called after a message was taken. Unless that is one of a series, the program probably
// answers it. If it had two lines it takes longer to begin with that, and the reader would have the line
// back by then.
func (b *boxes) prepareAnswer() {
	s := b.fastBoxes
	if b.asked == s.Sent {
		return
	}
	b.asked = s.Sent
	if !inTwoLines(b.length) {
		ntcopy.Claim(unsafe.Pointer(&s.Out[s.Sent%link.FastBoxCount]))
	}
}

// prepareSecond is called before a message of n bytes is written, so that both lines of its box are fetched
// at the same time.
func (b *boxes) prepareSecond(n int) {
	if inTwoLines(n) {
		ntcopy.Claim(unsafe.Add(unsafe.Pointer(&b.fastBoxes.Out[b.fastBoxes.Sent%link.FastBoxCount]), lineSize))
	}
}

// expectSecond is called when the box of the next message is polled, so that both of its lines come at the
// same time if it is as long as the last one.
func (b *boxes) expectSecond() {
	if inTwoLines(b.length) {
		ntcopy.Fetch(unsafe.Add(unsafe.Pointer(&b.fastBoxes.In[b.fastBoxes.Taken%link.FastBoxCount]), lineSize))
	}
}
