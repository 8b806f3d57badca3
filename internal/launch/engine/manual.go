package engine

import (
	"context"
	"sync"

	"github.com/openimpi/impi/internal/launch"
)

// Manual starts nothing: the user, or something else, starts the program on each machine.
type Manual struct {
	Machines []Machine // returned by Allocation
}

// Allocation returns Machines.
func (e Manual) Allocation(context.Context) ([]Machine, error) { return e.Machines, nil }

// Start starts nothing, so it cannot report ends: Stop closes Ends, and ends nothing.
func (e Manual) Start(context.Context, []Machine, Command) (*Started, error) {
	s := &Started{launcher: launch.New(), ends: make(chan End), over: make(chan struct{})}
	s.watchers.Add(1)
	s.release = sync.OnceFunc(s.watchers.Done)
	go s.finish()
	return s, nil
}
