package engine

import (
	"context"
	"sync"

	"github.com/openimpi/impi/internal/launch"
)

// Manual starts nothing: somebody or something else does, on each machine.
type Manual struct {
	Machines []Machine // what Allocation gives
}

// Allocation gives the machines that Manual was made with.
func (e Manual) Allocation(context.Context) ([]Machine, error) { return e.Machines, nil }

// Start starts nothing, and so knows of no ends: Ends is closed by Stop, which ends nothing.
func (e Manual) Start(context.Context, []Machine, Command) (*Started, error) {
	s := &Started{launcher: launch.New(), ends: make(chan End), over: make(chan struct{})}
	s.watchers.Add(1)
	s.release = sync.OnceFunc(s.watchers.Done)
	go s.finish()
	return s, nil
}
