package lifetime

import (
	"context"
	"sync"
)

// Group is tasks that end with a context. They may start others.
type Group struct {
	context.Context

	mu      sync.Mutex
	none    *sync.Cond // running is 0
	running int
	closed  bool
}

// NewGroup makes a group without tasks. They are to notice the end of ctx.
func NewGroup(ctx context.Context) *Group {
	g := &Group{Context: ctx}
	g.none = sync.NewCond(&g.mu)
	return g
}

// Go runs f as a task. It returns false if the group is closed, and f does not run.
func (g *Group) Go(f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.running++
	go func() {
		defer g.done()
		f()
	}()
	return true
}

func (g *Group) done() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running--; g.running == 0 {
		g.none.Broadcast()
	}
}

// Closed reports whether no task can begin any more.
func (g *Group) Closed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

// Close waits for all tasks, and lets none begin. The context must have ended.
func (g *Group) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	g.wait()
}

// Drain waits for all tasks and for those that begin meanwhile, and then lets none begin.
func (g *Group) Drain() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wait()
	g.closed = true
}

func (g *Group) wait() {
	for g.running > 0 {
		g.none.Wait()
	}
}
