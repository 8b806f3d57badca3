package sdk

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/openimpi/impi/plugins/sdk/proto"
)

// calls executes each request once, however often it is sent: requests have keys, and
// answers are kept for repeated requests. A request continues when the connection that
// brought it ends, up to its own time limit.
type calls struct {
	life context.Context
	undo func(answer any)

	mu      sync.Mutex
	entries map[string]*entry
	ended   []string // keys of entries that are done, oldest first
}

type entry struct {
	method    string
	cancel    context.CancelFunc
	abandoned bool
	done      chan struct{}
	answer    any // valid when done is closed
	err       error
}

// Limits of what a node may request.
const (
	keptAnswers = 1024
	maxKey      = 64
	maxTime     = time.Hour
)

func newCalls(life context.Context, undo func(answer any)) *calls {
	return &calls{life: life, undo: undo, entries: make(map[string]*entry)}
}

// intercept is a gRPC interceptor. Requests of other services are passed on unchanged.
func (c *calls) intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	r, ours := req.(interface{ GetCall() *proto.Call })
	if !ours {
		return handle(ctx, req)
	}
	call := r.GetCall()
	switch {
	case call.GetKey() == "" || len(call.GetKey()) > maxKey:
		return nil, status.Errorf(codes.InvalidArgument, "call.key must have 1 to %d bytes", maxKey)
	case call.GetTimeoutMs() == 0:
		return nil, status.Error(codes.InvalidArgument, "call.timeout_ms must be 1 or more")
	}
	e, err := c.enter(call, info.FullMethod, func(ctx context.Context) (any, error) { return handle(ctx, req) })
	if err != nil {
		return nil, err
	}
	select {
	case <-e.done:
		return e.answer, e.err
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

// enter returns the request's entry. If it is new, enter runs the request.
func (c *calls) enter(call *proto.Call, method string, run func(context.Context) (any, error)) (*entry, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[call.GetKey()]; e != nil {
		if e.method != method && e.method != "" {
			return nil, status.Errorf(codes.InvalidArgument, "call.key %q is that of another request", call.GetKey())
		}
		return e, nil
	}
	limit := min(time.Duration(call.GetTimeoutMs())*time.Millisecond, maxTime)
	ctx, cancel := context.WithTimeout(c.life, limit)
	e := &entry{method: method, cancel: cancel, done: make(chan struct{})}
	c.entries[call.GetKey()] = e
	go func() {
		defer cancel()
		answer, err := run(ctx)
		c.finish(call.GetKey(), e, answer, err)
	}()
	return e, nil
}

// finish keeps an answer, and forgets the oldest one if there are too many.
func (c *calls) finish(key string, e *entry, answer any, err error) {
	c.mu.Lock()
	abandoned := e.abandoned
	e.answer, e.err = answer, err
	if abandoned {
		e.answer, e.err = nil, errAbandoned
	}
	close(e.done)
	c.keep(key)
	c.mu.Unlock()
	if abandoned && err == nil {
		c.undo(answer)
	}
}

// keep adds an entry to those that are forgotten in their order. The caller holds mu.
func (c *calls) keep(key string) {
	if c.ended = append(c.ended, key); len(c.ended) > keptAnswers {
		delete(c.entries, c.ended[0])
		c.ended = append(c.ended[:0], c.ended[1:]...)
	}
}

var errAbandoned = status.Error(codes.Canceled, "the request was abandoned")

// abandon cancels a request. If it has not come yet it will be refused; if it runs it is
// cancelled; if it has succeeded it is undone.
func (c *calls) abandon(key string) {
	c.mu.Lock()
	e := c.entries[key]
	if e == nil {
		e = &entry{abandoned: true, done: make(chan struct{}), err: errAbandoned}
		close(e.done)
		c.entries[key] = e
		c.keep(key)
	}
	again := e.abandoned
	e.abandoned = true
	answer := e.answer
	c.mu.Unlock()
	if again {
		return
	}
	e.cancel()
	if answer != nil {
		c.undo(answer)
	}
}
