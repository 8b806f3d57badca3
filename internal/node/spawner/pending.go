package spawner

import "sync"

// pending are goroutines that are waited for. Others may be started until the wait is over, by who is
// no goroutine of it.
type pending struct {
	mu   sync.Mutex
	none *sync.Cond // n is 0
	n    int
	over bool
}

func newPending() *pending {
	p := &pending{}
	p.none = sync.NewCond(&p.mu)
	return p
}

// Go runs f in a goroutine, unless the wait is over; it tells whether it does.
func (p *pending) Go(f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return false
	}
	p.n++
	go func() {
		defer p.done()
		f()
	}()
	return true
}

func (p *pending) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.n--; p.n == 0 {
		p.none.Broadcast()
	}
}

// Wait waits until nothing is pending.
func (p *pending) Wait() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.n > 0 {
		p.none.Wait()
	}
	p.over = true
}
