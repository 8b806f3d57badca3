package mpi

import (
	"slices"
	"time"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/poll"
)

const (
	// scanEvery is how many steps go by before the poll set is asked about the
	// ports that are not hot; scanSeldom where all hot ones are memory, beside
	// which a system call is dear.
	scanEvery  = 16
	scanSeldom = 32
	// looks is how often a step looks into memory before it does anything else: so
	// often that it takes as long as one system call that brings nothing.
	looks = 8
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
	if len(p.errands) > 0 {
		p.carryOn()
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
		if i >= patience && p.nursery.lent > 0 && p.keepLent(false) {
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
	p.polls = 0 // Test and its like look everywhere
	p.step()
	if len(p.errands) > 0 {
		p.carryOn()
	}
	p.driving = false
}

// step polls once. Most steps read the ports that were busy last and nothing
// else; some ask the kernel about the rest, however busy those are.
func (p *process) step() (progress bool) {
	if p.news.Load() {
		progress = p.takeDeliveries()
	}
	every := uint(scanEvery)
	if p.quick() {
		every = scanSeldom
		progress = p.stare() || progress
	} else if p.look() {
		progress = true
	}
	if p.mute > 0 && !progress {
		progress = p.lookAround()
	}
	if p.waiters > 0 && p.lookAboard() {
		progress = true
	}
	scan := p.polls%every == 0
	p.polls++
	if scan && (p.scan(0) || p.lookStirred()) {
		progress = true
	}
	if (progress || scan || p.nursery.owed) && p.output() {
		progress = true
	}
	return progress
}

// stare is look for ports that are memory.
func (p *process) stare() (progress bool) {
	for i := 0; !p.look(); i++ {
		if i == looks || p.wanted.Load() != 0 {
			return false
		}
		poll.Pause()
	}
	return true
}

// look reads the hot ports.
func (p *process) look() (progress bool) {
	for _, q := range p.hot {
		switch {
		case q == nil:
		case q.inplace != nil && !q.full && !q.inplace.Ready(): // quickest of all
		case p.receive(q):
			progress = true
			p.hit(q)
		case !q.memory:
			p.miss(q)
		case q.full && p.flush(q): // nobody else tells that there is room again
			progress = true
		}
	}
	return progress
}

// quick tells whether nothing but memory is hot.
func (p *process) quick() bool {
	for i, q := range &p.hot {
		if q == nil {
			return i > 0
		}
		if !q.memory {
			return false
		}
	}
	return true
}

// lookAround reads the ports that only reading tells about: of their end, too.
func (p *process) lookAround() (progress bool) {
	for _, q := range p.ports {
		if q == nil || !q.mute || !p.receive(q) {
			continue
		}
		progress = true
		if p.ports[q.id] == q && !slices.Contains(p.hot[:], q) { // receive has not dropped it
			p.warm(q)
		}
	}
	return progress
}

// output writes what progress has brought about: acknowledgements, the rest of
// long messages, what waited for a window. It tells whether anything left, which
// may be what somebody waits for.
func (p *process) output() (progress bool) {
	p.nursery.owed = false
	p.findRoutes()
	for _, q := range p.ports {
		if q != nil && p.due(q) && p.flush(q) {
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
	return p.handle(events)
}

func (p *process) handle(events []poll.Event) (progress bool) {
	for _, ev := range events {
		switch ev.Key {
		case machine.WakeKey:
			p.set.Clear()
			progress = true
			continue
		case boardKey:
			p.rung()
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
		if ev.Writable && q.keeper != nil {
			q.keeper.Push()
		}
		if ev.Writable && p.due(q) {
			p.flush(q)
			progress = true
		}
	}
	return progress
}

// park sleeps until a link or the waker has something. Other goroutines may
// use p meanwhile.
func (p *process) park() {
	sleepless := p.output() || p.news.Load() || p.nursery.lent > 0 && p.keepLent(true)
	for _, q := range p.ports {
		if q != nil && !p.arm(q) {
			sleepless = true
		}
	}
	if p.tell() || sleepless || p.failure != nil {
		p.giveWay()
		return
	}
	if len(p.aboard.seats) > 0 {
		defer p.wakeAboard()
		if !p.sleepAboard() {
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
	if q.keeper != nil {
		return p.armLasting(q)
	}
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
	if q == nil || !p.due(q) {
		return
	}
	if p.eng.Needy(q.id) && p.receive(q) && p.ports[id] != q {
		return // it broke
	}
	limit := holdBack
	if q.memory {
		size, limit = size+wire.HeaderSize, holdBackMemory
	}
	if blocking || p.driving || !q.burst || q.held+size > limit {
		q.burst, q.awaited = !blocking, blocking
		p.flush(q)
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
		if q != nil && (q.held == 0 || p.driving) && p.due(q) {
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
