package peers

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
)

// most bounds what is kept of an output, in bytes.
const most = 16 << 20

// Output collects what a party or a job prints.
type Output struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // closed at the next write; nil: nothing waits
}

// Write keeps p and wakes those that wait for output. What exceeds the bound is dropped, without an
// error.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.more != nil {
		close(o.more)
		o.more = nil
	}
	if o.text.Len() > most {
		return len(p), nil
	}
	return o.text.Write(p)
}

func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Tail returns the last lines of the output.
func (o *Output) Tail() string {
	lines := strings.Split(strings.TrimSpace(o.String()), "\n")
	return strings.Join(lines[max(0, len(lines)-12):], "\n")
}

// Await waits until the output contains a text.
func (o *Output) Await(ctx context.Context, text string) error {
	if !o.Until(ctx, func(printed string) bool { return strings.Contains(printed, text) }) {
		return fmt.Errorf("%q was not said: %w\n%s", text, context.Cause(ctx), o)
	}
	return nil
}

// Until waits until enough accepts the output, and reports whether it does: ctx may end first.
func (o *Output) Until(ctx context.Context, enough func(printed string) bool) bool {
	for {
		o.mu.Lock()
		if o.more == nil {
			o.more = make(chan struct{})
		}
		printed, more := o.text.String(), o.more
		o.mu.Unlock()
		if enough(printed) {
			return true
		}
		select {
		case <-more:
		case <-ctx.Done():
			return enough(o.String())
		}
	}
}
