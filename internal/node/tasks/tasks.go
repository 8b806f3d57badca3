// Package tasks runs what a node does beside everything else, and knows when nothing of it is
// left.
package tasks

import (
	"context"
	"sync"
)

// Group is tasks that end with a context. They may start others.
type Group struct {
	context.Context

	mu     sync.Mutex
	wg     sync.WaitGroup
	closed bool
}

// New makes a group without tasks. They are to notice the end of ctx.
func New(ctx context.Context) *Group { return &Group{Context: ctx} }

// Go runs f as a task. False: the group is closed, and f does not run.
func (g *Group) Go(f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.wg.Go(f)
	}
	return !g.closed
}

// Closed tells whether nothing is begun any more.
func (g *Group) Closed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

// Close waits for all tasks, and lets none begin. The context has ended.
func (g *Group) Close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.wg.Wait()
}
