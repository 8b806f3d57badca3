package inspect

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/openimpi/impi/internal/links"
)

// endingLimit is how long the node's end waits for those who want to know why it ends.
const endingLimit = 500 * time.Millisecond

// EndNotifier passes on how a node's part of the job ends to those that wait for it.
type EndNotifier struct {
	how      *links.Ending // set before over is closed
	over     chan struct{}
	awaiting atomic.Int32
}

// SetEnd records the end. It is called once. The failure is empty if the node ends in order.
func (e *EndNotifier) SetEnd(site, failure string) {
	e.how = &links.Ending{Site: site, Failure: failure}
	close(e.over)
}

// Awaiting returns the number of requests that wait for the end.
func (e *EndNotifier) Awaiting() int { return int(e.awaiting.Load()) }

// await returns how the node ends, or nil if ctx ended before.
func (e *EndNotifier) await(ctx context.Context) *links.Ending {
	e.awaiting.Add(1) // stays counted at the end, as the answer is yet to be sent
	select {
	case <-e.over:
		return e.how
	case <-ctx.Done():
		e.awaiting.Add(-1)
		return nil
	}
}
