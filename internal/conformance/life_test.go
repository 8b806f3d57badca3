package conformance

import (
	"context"
	"testing"
	"time"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/link/linktest"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// queue is a transport, and a listener, whose links are accepted in the order in which they were dialled.
type queue struct {
	transports.Transport
	transports.Listener
	links chan link.Link
}

func (queue) Address() string { return "queue" }

func (q queue) Dial(context.Context, transports.DialSpec) (link.Link, error) {
	a, b := linktest.Pair(100)
	q.links <- b
	return a, nil
}

func (q queue) Accept(ctx context.Context) (link.Link, error) {
	select {
	case l := <-q.links:
		return l, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// A link of a try that was given up, and is accepted only during the next one, is not taken for that one's.
func TestTriesAreToldApart(t *testing.T) {
	q := queue{links: make(chan link.Link, 10)}
	if again(t.Context(), 50*time.Millisecond, 1, q, never{q}) == nil {
		t.Fatal("a link that nobody has accepted")
	}
	if err := again(t.Context(), 5*time.Second, 2, q, q); err != nil {
		t.Error(err)
	}
}

// never is a listener that accepts nothing.
type never struct{ queue }

func (never) Accept(ctx context.Context) (link.Link, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
