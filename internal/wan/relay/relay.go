// Package relay has the lines of a wide area between sockets, for who may make no network
// namespaces: a relay listens at an address and passes what comes to another one, and back. UDP is
// lost, doubled and reordered as IP packets are. Of TCP there is rate, delay and jitter: its
// packets are the kernel's on both sides of the relay, which never loses any; and a connection is
// there at once, without a round trip.
package relay

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/openimpi/impi/internal/wan"
)

// piece is what a line of a relay moves.
type piece struct {
	bytes []byte
	to    sink
}

// sink takes what has arrived. It must not block.
type sink interface{ take(b []byte) }

// pipe is a line and who takes out what has arrived, at its time.
type pipe struct {
	mu    sync.Mutex
	line  *wan.Line[piece]
	begun time.Time
	more  chan struct{} // has an element when there may be something new under way
	room  *sync.Cond    // signalled when something has arrived
	most  int           // maximum bytes under way before await waits
	bytes int           // bytes under way
	ended bool
}

func newPipe(shape wan.Shape, seed uint64) *pipe {
	p := &pipe{line: wan.NewLine[piece](shape, seed), begun: time.Now(), more: make(chan struct{}, 1)}
	p.room = sync.NewCond(&p.mu)
	return p
}

// offer gives b to the line, which owns it from now on. times is how often b will arrive: 0 if it
// is lost, 2 if it is duplicated.
func (p *pipe) offer(b []byte, to sink) (times int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.give(b, to)
}

func (p *pipe) give(b []byte, to sink) (times int) {
	times = p.line.Offer(time.Since(p.begun), piece{b, to}, len(b))
	p.bytes += times * len(b)
	select {
	case p.more <- struct{}{}:
	default: // it is known already
	}
	return times
}

// await offers bytes once there is room for them, as a sender of TCP waits for its window.
func (p *pipe) await(b []byte, to sink) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.ended && p.bytes > 0 && p.bytes+len(b) > p.most {
		p.room.Wait()
	}
	p.give(b, to)
}

func (p *pipe) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		next := p.deliver()
		if next >= 0 {
			timer.Reset(next)
		}
		select {
		case <-timer.C:
		case <-p.more:
		case <-ctx.Done():
		}
	}
	p.mu.Lock()
	p.ended = true
	p.room.Broadcast()
	p.mu.Unlock()
}

// deliver hands out what has arrived, and returns in how long something else does; negative:
// nothing.
func (p *pipe) deliver() time.Duration {
	for {
		p.mu.Lock()
		now := time.Since(p.begun)
		got, ok := p.line.Take(now)
		if !ok {
			at, under := p.line.Next()
			p.mu.Unlock()
			if !under {
				return -1
			}
			return at - now
		}
		p.bytes -= len(got.bytes)
		p.room.Broadcast()
		p.mu.Unlock()
		got.to.take(got.bytes)
	}
}

// Relay forwards data that arrive at an address to another one, over a line in each direction.
type Relay struct {
	there, back *pipe
	address     string
	cancel      context.CancelFunc
	wait        sync.WaitGroup
	close       func() error
}

var errLossy = errors.New("a relay of TCP cannot lose, double or reorder packets: the kernel makes and acknowledges them on both sides of it; use network namespaces (internal/wan/area), or UDP")

func start(there, back wan.Shape, seed uint64) (r *Relay, ctx context.Context, err error) {
	if err := errors.Join(there.Check(), back.Check()); err != nil {
		return nil, nil, fmt.Errorf("a line of a relay: %w", err)
	}
	r = &Relay{there: newPipe(there, seed), back: newPipe(back, seed+1)}
	ctx, r.cancel = context.WithCancel(context.Background())
	for _, p := range []*pipe{r.there, r.back} {
		r.wait.Go(func() { p.run(ctx) })
	}
	return r, ctx, nil
}

// Address returns where the relay listens, as ip:port; what arrives there goes by the line.
func (r *Relay) Address() string { return r.address }

// Counts returns the counts of what was sent to the address, and back. For TCP they count the
// pieces that the relay has read at a time.
func (r *Relay) Counts() (there, back wan.Counts) {
	r.there.mu.Lock()
	there = r.there.line.Counts()
	r.there.mu.Unlock()
	r.back.mu.Lock()
	back = r.back.line.Counts()
	r.back.mu.Unlock()
	return there, back
}

// Close ends the relay and its connections; what is under way is lost.
func (r *Relay) Close() error {
	r.cancel()
	err := r.close()
	r.wait.Wait()
	return err
}
