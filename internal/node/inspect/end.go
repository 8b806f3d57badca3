package inspect

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/openimpi/impi/internal/links"
)

// endingLimit is how long the node's end waits for those who want to know why it ends.
const endingLimit = 500 * time.Millisecond

// End tells who awaits it how a node's part of the job ends.
type End struct {
	how      *links.Ending // before over is closed
	over     chan struct{}
	awaiting atomic.Int32
}

// Tell is called once. The failure is empty if the node ends in order.
func (e *End) Tell(site, failure string) {
	e.how = &links.Ending{Site: site, Failure: failure}
	close(e.over)
}

// Awaiting is how many wait for the end.
func (e *End) Awaiting() int { return int(e.awaiting.Load()) }

// await returns how the node ends, or nil if ctx ended before.
func (e *End) await(ctx context.Context) *links.Ending {
	e.awaiting.Add(1) // it stays so, as the answer is yet to be sent
	select {
	case <-e.over:
		return e.how
	case <-ctx.Done():
		e.awaiting.Add(-1)
		return nil
	}
}
