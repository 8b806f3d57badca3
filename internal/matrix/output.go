package matrix

import (
	"bytes"
	"strings"
	"sync"
)

// mark is the line by which a program says that it is in the middle of its work.
const mark = "matrix: at work"

// most bounds what is kept of a job's output, in bytes.
const most = 16 << 20

// output keeps what a job prints, and notices the mark.
type output struct {
	mu     sync.Mutex
	buf    bytes.Buffer
	marked chan struct{}
	seen   bool
}

// Write keeps b.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.buf.Len() > most {
		return len(b), nil
	}
	o.buf.Write(b)
	if !o.seen && bytes.Contains(o.buf.Bytes(), []byte(mark)) {
		o.seen = true
		close(o.marked)
	}
	return len(b), nil
}

// all is what was printed.
func (o *output) all() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// tail is the end of what was printed.
func (o *output) tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(o.buf.String()), "\n")
	return strings.Join(lines[max(0, len(lines)-12):], "\n")
}
