package launch

import (
	"errors"
	"os"
	"sync"
	"time"
)

type pipe struct {
	r    *os.File
	s    *Stream
	done chan struct{}

	mu       sync.Mutex // held while the deadline is set
	draining bool
}

func newPipe(r *os.File, s *Stream) *pipe { return &pipe{r: r, s: s, done: make(chan struct{})} }

func (p *pipe) copy() {
	defer close(p.done)
	defer p.s.Close()
	defer p.r.Close()
	buf := make([]byte, 32<<10)
	for {
		draining := p.deadline()
		n, err := p.r.Read(buf)
		_, _ = p.s.Write(buf[:n]) // a stream returns no errors
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded):
			if draining {
				return
			}
			p.s.Flush()
		default:
			return // the end of the output, or the deadline
		}
	}
}

// deadline sets the deadline of the next Read, and reports whether the process is known to have
// ended.
func (p *pipe) deadline() (draining bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var t time.Time
	switch {
	case p.draining:
		t = time.Now().Add(drainDelay)
	case p.s.Pending():
		t = time.Now().Add(promptDelay)
	}
	_ = p.r.SetReadDeadline(t) // our pipes support deadlines
	return p.draining
}

// drain tells the pipe that the process has ended.
func (p *pipe) drain() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.draining = true
	_ = p.r.SetReadDeadline(time.Now().Add(drainDelay))
}
