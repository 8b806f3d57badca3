package play

import (
	"fmt"
	"sync"
	"time"
)

// trace is everything that was sent and received, in order, and what the IUT
// printed. The middle of a long one is left out.
type trace struct {
	mu    sync.Mutex
	begun time.Time
	head  []string
	tail  []string // ring
	n     int      // lines that went into tail
}

const (
	traceHead = 80
	traceTail = 160
)

func newTrace() *trace { return &trace{begun: time.Now(), tail: make([]string, traceTail)} }

func (t *trace) add(format string, args ...any) {
	line := fmt.Sprintf("%8.3f  ", time.Since(t.begun).Seconds()) + fmt.Sprintf(format, args...)
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.head) < traceHead {
		t.head = append(t.head, line)
		return
	}
	t.tail[t.n%traceTail] = line
	t.n++
}

func (t *trace) lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := append([]string(nil), t.head...)
	if t.n > traceTail {
		all = append(all, fmt.Sprintf("          ... %d lines left out ...", t.n-traceTail))
	}
	for i := max(0, t.n-traceTail); i < t.n; i++ {
		all = append(all, t.tail[i%traceTail])
	}
	return all
}
