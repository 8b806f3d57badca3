package conn

import (
	"context"
	"sync"
)

// Pumps are the pumps of a process that run. The zero value has none.
type Pumps struct {
	mu      sync.Mutex
	running map[*Pump]chan struct{} // closed when the pump has ended
	closed  bool
}

// Run runs a pump until it ends, which after Close is at once. It returns the result of the pump's
// Run.
func (r *Pumps) Run(p *Pump) error {
	ended := make(chan struct{})
	r.mu.Lock()
	if r.running == nil {
		r.running = make(map[*Pump]chan struct{})
	}
	r.running[p] = ended
	closed := r.closed
	r.mu.Unlock()
	if closed {
		p.Close()
	}
	err := p.Run()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, p)
	close(ended)
	return err
}

// Flush waits for the pumps whose users have closed their links: until the bytes of these have been
// passed on, or ctx ends.
func (r *Pumps) Flush(ctx context.Context) {
	r.mu.Lock()
	var leaving []chan struct{}
	for p, ended := range r.running {
		if p.Left() {
			leaving = append(leaving, ended)
		}
	}
	r.mu.Unlock()
	for _, ended := range leaving {
		select {
		case <-ended:
		case <-ctx.Done():
			return
		}
	}
}

// Close breaks the links of all pumps that run.
func (r *Pumps) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for p := range r.running {
		p.Close()
	}
}

// Len returns the number of pumps that run.
func (r *Pumps) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.running)
}
