package mpi

import (
	"time"

	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/poll"
)

const (
	// flushAfter is how long an Isend may be held back for company when the
	// program computes instead of coming back.
	flushAfter = 500 * time.Microsecond
)

// wait makes progress until r is done.
func (p *process) wait(r *message.Request) {
	for !r.Done() && p.failure == nil {
		p.turn()
	}
}

// turn makes some progress, or sleeps until there is some: once it returns, the
// caller looks whether that was what it waits for. p is locked, but may be
// unlocked in between.
func (p *process) turn() {
	if p.driving {
		p.watch()
		return
	}
	p.driving = true
	if !p.flushAll() {
		p.drive()
	}
	if len(p.background) > 0 {
		p.carryOn()
	}
	p.tell()
	if p.links.Wanted.Load() != 0 { // even if there is no end of progress
		p.giveWay()
	}
	p.driving = false
}

// watch sleeps until something has happened, or somebody must drive.
func (p *process) watch() {
	if p.output() || p.tell() { // the driver may be asleep, and does not know of what we began
		return
	}
	p.waiters++
	p.turns.Wait()
	p.links.Wanted.Add(-1)
}

// drive polls, and sleeps in the end, until something comes or somebody wants
// the lock, who may change what the caller waits for.
func (p *process) drive() {
	p.spin.Begin()
	for i := 0; !p.step() && p.links.Wanted.Load() == 0; i++ {
		if i >= patience && p.lent > 0 && p.keepLent(false) {
			return
		}
		if p.spin.Over(i) {
			p.park()
			return
		}
	}
}

// test makes the progress that can be had without waiting.
func (p *process) test() {
	if p.driving {
		p.giveWay() // somebody else is at it, and may need this core to go on
		return
	}
	p.driving = true
	p.flushAll()
	p.links.Everywhere() // Test and its like look everywhere
	p.step()
	if len(p.background) > 0 {
		p.carryOn()
	}
	p.driving = false
}

// step polls once.
func (p *process) step() (progress bool) {
	if p.news.Load() {
		progress = p.takeDeliveries()
	}
	moved, scanned := p.links.Step()
	progress = progress || moved
	if p.waiters > 0 && p.lookAtBoards() {
		progress = true
	}
	if (progress || scanned || p.links.Owed()) && p.output() {
		progress = true
	}
	return progress
}

// output writes what progress has brought about: acknowledgements, the rest of
// long messages, what waited for a window. It tells whether anything left, which
// may be what somebody waits for.
func (p *process) output() (progress bool) {
	p.links.Owed() // what is owed is written now
	p.findRoutes()
	for _, q := range p.ports {
		if q != nil && q.Due() && q.Flush() {
			progress = true
		}
	}
	return progress
}

// Event hears of what is no port's in the poll set: the waker, and the bell of the board.
func (p *process) Event(key uint32) (progress bool) {
	if key == boardKey {
		p.rung()
	}
	return true
}

// SetFailed ends the job for this proc: it cannot wait any more.
func (p *process) SetFailed(err error) { p.fail(err) }

// park sleeps until a link or the waker has something. Other goroutines may
// use p meanwhile.
func (p *process) park() {
	sleepless := p.output() || p.news.Load() || p.lent > 0 && p.keepLent(true)
	sleepless = !p.links.ArmAll() || sleepless
	if p.tell() || sleepless || p.failure != nil {
		p.giveWay()
		return
	}
	if len(p.boards.places) > 0 {
		defer p.wakeFromBoards()
		if !p.sleepAtBoards() {
			p.giveWay()
			return
		}
	}
	p.asleep = true
	events, err := p.doze()
	p.asleep = false
	if err != nil {
		p.fail(err)
		return
	}
	p.links.Handle(events)
	p.output()
}

// doze sleeps without the lock, and has it again afterwards, even if the machine
// ends this proc in its sleep.
func (p *process) doze() ([]poll.Event, error) {
	p.mu.Unlock()
	defer p.mu.Lock()
	return p.links.Wait(-1)
}

// send gets the packets of a request that was just started on their way. Those
// of blocking calls leave at once. Of a series of non-blocking ones the first
// does; the others wait for company until the program waits for something, until
// there are many, or for flushAfter.
func (p *process) send(to message.Peer, size int, blocking bool) {
	id, ok := p.eng.Route(to)
	if !ok {
		p.findRoutes()
		if id, ok = p.eng.Route(to); !ok {
			return // a direct link is being opened
		}
	}
	q := p.ports[id]
	if q == nil || !q.Due() {
		return
	}
	if p.eng.Needy(q.id) && q.Receive() && p.ports[id] != q {
		return // it broke
	}
	limit := holdBack
	if q.Memory() {
		size, limit = size+wire.HeaderSize, holdBackMemory
	}
	if blocking || p.driving || !q.burst || q.held+size > limit {
		q.burst, q.awaited = !blocking, blocking
		q.Flush()
		q.awaited = false
		return
	}
	q.held += size
	p.deferred = true
	if !p.armed {
		p.armed = true
		p.flusher.Reset(flushAfter)
	}
}

// began is called after receive r was posted. If its message was there already,
// that has brought about an answer, which leaves now unless it joins held Isends.
func (p *process) began(r *message.Request) {
	if r.Posted() {
		return
	}
	p.findRoutes()
	for _, q := range p.ports {
		if q != nil && (q.held == 0 || p.driving) && q.Due() {
			q.Flush()
		}
	}
	p.own(r)
}

// flushLate runs in the timer's goroutine.
func (p *process) flushLate() {
	p.lock()
	defer p.unlock()
	p.armed = false
	if p.deferred {
		p.flushAll()
	}
}

// settle makes progress until done says that it is enough.
func (p *process) settle(done func() bool) error {
	p.lock()
	defer p.unlock()
	for p.failure == nil {
		if p.output(); done() {
			return nil
		}
		p.turn()
	}
	return p.failure
}
