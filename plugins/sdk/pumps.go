package sdk

import (
	"context"
	"sync"

	"github.com/openimpi/impi/transports/conn"
)

// pumps are the links whose bytes this process passes on.
type pumps struct {
	life      context.Context // of the server
	keepAwake *keepAwake

	mu      sync.Mutex
	running map[*conn.Pump]chan struct{} // closed when it has ended
}

func newPumps(life context.Context) *pumps {
	return &pumps{life: life, keepAwake: newKeepAwake(), running: make(map[*conn.Pump]chan struct{})}
}

// run runs the pump of a link until it ends.
func (r *pumps) run(id uint64, p *conn.Pump) {
	r.keepAwake.enter()
	defer r.keepAwake.leave()
	ended := make(chan struct{})
	r.mu.Lock()
	r.running[p] = ended
	closing := r.life.Err() != nil
	r.mu.Unlock()
	if closing {
		p.Close()
	}
	if err := p.Run(); err != nil && r.life.Err() == nil {
		Logger().Debug("link has broken", "link", id, "error", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, p)
	close(ended)
}

// flush waits for the links that their procs have closed.
func (r *pumps) flush(ctx context.Context) {
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

// close breaks all links that are left.
func (r *pumps) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p := range r.running {
		p.Close()
	}
}

func (r *pumps) count() uint32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return uint32(len(r.running))
}
