package peers

import (
	"bytes"
	"context"
	"fmt"
	"sync"
)

// Output collects what a party prints.
type Output struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // closed at the next write, if somebody waits
}

// Write adds p to the output.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.more != nil {
		close(o.more)
		o.more = nil
	}
	return o.text.Write(p)
}

// String returns all of the output.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Await waits until the output contains a text.
func (o *Output) Await(ctx context.Context, text string) error {
	for {
		o.mu.Lock()
		if bytes.Contains(o.text.Bytes(), []byte(text)) {
			o.mu.Unlock()
			return nil
		}
		if o.more == nil {
			o.more = make(chan struct{})
		}
		more := o.more
		o.mu.Unlock()
		select {
		case <-more:
		case <-ctx.Done():
			return fmt.Errorf("%q was not said: %w\n%s", text, context.Cause(ctx), o)
		}
	}
}
