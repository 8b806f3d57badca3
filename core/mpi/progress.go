package mpi

import (
	"time"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/poll"
)

const (
	// scanEvery is how many polls of the hot ports go by before the poll set is
	// asked about all others.
	scanEvery = 16
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
	p.tell()
	if p.wanted.Load() != 0 { // even if there is no end of progress
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
	p.wanted.Add(-1)
}

// drive polls, and sleeps in the end, until something comes or somebody wants
// the lock, who may change what the caller waits for.
func (p *process) drive() {
	p.spin.Begin()
	for i := 0; !p.step() && p.wanted.Load() == 0; i++ {
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
	p.polls = 0 // Test and its like look everywhere
	p.step()
	p.driving = false
}

// step polls once. Most steps read the ports that were busy last and nothing
// else; every scanEvery-th asks the kernel about the rest, however busy those are.
func (p *process) step() (progress bool) {
	if p.news.Load() {
		progress = p.takeDeliveries()
	}
	for _, q := range p.hot {
		if q != nil && p.receive(q) {
			progress = true
			p.hit(q)
		}
	}
	scan := p.polls%scanEvery == 0
	p.polls++
	if scan && p.scan(0) {
		progress = true
	}
	if (progress || scan) && p.output() {
		progress = true
	}
	return progress
}

// output writes what progress has brought about: acknowledgements, the rest of
// long messages, what waited for a window. It tells whether anything left, which
// may be what somebody waits for.
func (p *process) output() (progress bool) {
	p.findRoutes()
	for _, q := range p.ports {
		if q != nil && p.eng.HasOutput(q.id) && p.flush(q) {
			progress = true
		}
	}
	return progress
}

// scan asks the poll set and reads the ports that it names.
func (p *process) scan(timeout time.Duration) (progress bool) {
	events, err := p.set.Wait(timeout)
	if err != nil {
		p.fail(err)
		return true
	}
	progress = p.handle(events)
	if p.mute > 0 {
		for _, q := range p.ports {
			if q != nil && q.mute && p.receive(q) {
				progress = true
			}
		}
	}
	return progress
}

func (p *process) handle(events []poll.Event) (progress bool) {
	for _, ev := range events {
		if ev.Key == machine.WakeKey {
			p.set.Clear()
			progress = true
			continue
		}
		q := p.ports[ev.Key]
		if q == nil {
			continue
		}
		if ev.Readable && p.receive(q) {
			progress = true
		}
		if p.ports[q.id] != q {
			continue // receive has dropped it
		}
		if ev.Readable {
			p.warm(q)
		}
		if ev.Writable && p.eng.HasOutput(q.id) {
			p.flush(q)
			progress = true
		}
	}
	return progress
}

// park sleeps until a link or the waker has something. Other goroutines may
// use p meanwhile.
func (p *process) park() {
	sleepless := p.output() || p.news.Load()
	for _, q := range p.ports {
		if q != nil && !p.arm(q) {
			sleepless = true
		}
	}
	if p.tell() || sleepless || p.failure != nil {
		p.giveWay()
		return
	}
	p.asleep = true
	events, err := p.doze()
	p.asleep = false
	if err != nil {
		p.fail(err)
		return
	}
	p.handle(events)
	p.output()
}

// doze sleeps without the lock, and has it again afterwards, even if the machine
// ends this proc in its sleep.
func (p *process) doze() ([]poll.Event, error) {
	p.mu.Unlock()
	defer p.mu.Lock()
	return p.set.Wait(-1)
}

// arm tells the poll set what q waits for. False means that we must not sleep.
func (p *process) arm(q *port) bool {
	h := q.link.Handle()
	if h == link.NoHandle {
		return false
	}
	want := link.Readable
	if !q.ended && p.eng.HasOutput(q.id) {
		want |= link.Writable
	}
	q.streak = 0
	if want != q.interest {
		wait := p.set.Modify
		if q.interest == 0 {
			wait = p.set.Add
		}
		if err := wait(h, uint32(q.id), want); err != nil {
			p.drop(q, err)
			return false
		}
		q.interest = want
	}
	return !q.link.Arm(want)
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
	if q == nil || !p.eng.HasOutput(id) {
		return
	}
	if blocking || p.driving || !q.burst || q.held+size > holdBack {
		q.burst = !blocking
		p.flush(q)
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
	p.findRoutes()
	for _, q := range p.ports {
		if q != nil && (q.held == 0 || p.driving) && p.eng.HasOutput(q.id) {
			p.flush(q)
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
