package conformance

import (
	"context"
	"testing"
	"time"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/link/linktest"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// queue is a transport, and a listener, whose links are accepted in the order in which they were
// dialled.
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

// A link of a try that was given up, and is accepted only during the next one, is not taken for
// that one's.
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

// A listener gets more time on a machine where a start takes long, within the limit of a case, and
// no less where a start is quick.
func TestReturnLimits(t *testing.T) {
	s := time.Second
	for _, c := range []struct{ wait, started, whole, try time.Duration }{
		{30 * s, 0, 30 * s, 5 * s},
		{30 * s, s, 34 * s, 5 * s},
		{30 * s, 10 * s, 70 * s, 20 * s}, // two starts within one try
		{30 * s, 29 * s, 75 * s, 30 * s},
	} {
		if whole, try := returnLimits(c.wait, c.started); whole != c.whole || try != c.try {
			t.Errorf("a start takes %v: %v and %v, want %v and %v", c.started, whole, try, c.whole, c.try)
		}
	}
	if whole, _ := returnLimits(patience, patience); whole+patience > (trust{most: patience}).limit() {
		t.Errorf("%v and the dials before do not fit in a case of %v", whole, trust{most: patience}.limit())
	}
}
