package sdk

import (
	"context"
	"slices"
	"sync"

	"github.com/openimpi/impi/plugins/sdk/proto"
)

// events are the events that the node has not handled yet. An event stays until its link is
// opened or closed, or its listener stopped, so that a node that lost the stream can get it
// again. Their number is bounded by that of waiting links and listeners.
type events struct {
	mu   sync.Mutex
	last uint64
	list []*proto.Event
	more chan struct{} // closed when list grows
}

func newEvents() *events { return &events{more: make(chan struct{})} }

func (v *events) add(e *proto.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last++
	e.Sequence = v.last
	v.list = append(v.list, e)
	close(v.more)
	v.more = make(chan struct{})
}

func (v *events) settle(match func(*proto.Event) bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.list = slices.DeleteFunc(v.list, match)
}

// after returns the events after a sequence number, and a channel that is closed when there
// are more.
func (v *events) after(n uint64) ([]*proto.Event, <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	i, _ := slices.BinarySearchFunc(v.list, n+1, func(e *proto.Event, n uint64) int {
		return int(int64(e.GetSequence() - n))
	})
	return slices.Clone(v.list[i:]), v.more
}

// follow sends events, from the one after n on, until the context ends.
func (v *events) follow(ctx context.Context, n uint64, send func(*proto.Event) error) error {
	for {
		batch, more := v.after(n)
		for _, e := range batch {
			if err := send(e); err != nil {
				return err
			}
			n = e.GetSequence()
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil
		}
	}
}
