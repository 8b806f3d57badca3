package matrix

import (
	"bytes"
	"context"
	"strings"
	"sync"
)

// most bounds what is kept of a job's output, in bytes.
const most = 16 << 20

// output keeps what a job prints, and wakes those that wait for some of it.
type output struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	more chan struct{} // closed by the next Write; nil: nobody waits
}

// Write keeps b.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.buf.Len() > most {
		return len(b), nil
	}
	o.buf.Write(b)
	if o.more != nil {
		close(o.more)
		o.more = nil
	}
	return len(b), nil
}

// await waits until what was printed is enough, and reports whether it is: ctx may end
// first.
func (o *output) await(ctx context.Context, enough func(printed string) bool) bool {
	for {
		o.mu.Lock()
		if o.more == nil {
			o.more = make(chan struct{})
		}
		printed, more := o.buf.String(), o.more
		o.mu.Unlock()
		if enough(printed) {
			return true
		}
		select {
		case <-more:
		case <-ctx.Done():
			return enough(o.all())
		}
	}
}

// all returns what was printed.
func (o *output) all() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// tail returns the end of what was printed.
func (o *output) tail() string {
	lines := strings.Split(strings.TrimSpace(o.all()), "\n")
	return strings.Join(lines[max(0, len(lines)-12):], "\n")
}
