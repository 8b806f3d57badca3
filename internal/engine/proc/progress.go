package proc

import (
	"time"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/poll"
	"github.com/openimpi/impi/plugins/sdk/support/polling"
)

const (
	// flushAfter is how long output of Isends is held back at most, if the program computes and
	// calls MPI no more.
	flushAfter = 500 * time.Microsecond
)

// Wait makes progress until r is done.
func (p *Process) Wait(r *message.Request) {
	for !r.Done() && p.Failure == nil && p.Survival.doubt(r) == nil {
		p.Account.AwaitRequest(r)
	}
}

// AwaitProgress makes some progress, or sleeps until there is some; the caller then checks whether
// its condition is met. p is locked, but may be unlocked meanwhile.
func (p *Process) AwaitProgress() {
	if p.Driving {
		p.watch()
		return
	}
	p.Driving = true
	if !p.Endpoints.FlushAll() {
		p.drive()
	}
	p.Background.carryOn()
	p.tell()
	if p.Driver.Wanted.Load() != 0 { // even if progress never ends
		p.giveWay()
	}
	p.Driving = false
}

// watch sleeps until something has happened, or this goroutine must drive.
func (p *Process) watch() {
	if p.output() || p.tell() { // the sleeping driver has not seen requests begun since
		return
	}
	p.Waiters++
	p.turns.Wait()
	p.Driver.Wanted.Add(-1)
}

// drive polls, and finally sleeps, until something comes or another goroutine wants the lock,
// which may change what this one waits for.
func (p *Process) drive() {
	p.spin.Begin()
	for i := 0; !p.step() && p.Driver.Wanted.Load() == 0; i++ {
		if i >= patience && p.Endpoints.lent > 0 && p.Endpoints.keepLent(false) {
			return
		}
		if p.spin.Over(i) {
			p.park()
			return
		}
	}
}

// Test makes the progress that needs no waiting.
func (p *Process) Test() {
	if p.Driving {
		p.giveWay() // another goroutine drives, and may need this core
		return
	}
	p.Driving = true
	p.Endpoints.FlushAll()
	p.Driver.PollAll() // Test and similar calls look at all links
	progress := p.step()
	p.Background.carryOn()
	p.Driving = false
	switch {
	case progress:
		p.vain = 0
	case p.vain < patient:
		p.vain++
	default: // a program that tests in a loop may keep the awaited proc from its core
		p.vain = 0
		p.Mu.Unlock()
		YieldCore()
		p.Mu.Lock()
	}
}

// patient is how many calls of Test in a row may see no progress before the core is offered.
const patient = 15

// YieldCore yields the core to threads that wait for it; tests replace it.
var YieldCore = polling.Yield

func (p *Process) step() (progress bool) {
	if p.Node.news.Load() {
		progress = p.Node.takeDeliveries()
	}
	if p.Native != nil && p.Native.poll() {
		progress = true
	}
	moved, scanned := p.Driver.Step()
	progress = progress || moved
	if p.Survival != nil && p.Survival.receiveNotices() {
		progress = true
	}
	if p.Waiters > 0 && p.Boards.lookAtBoards() {
		progress = true
	}
	if len(p.Boards.pending) > 0 && p.Boards.someGoesOn() {
		progress = true
	}
	if (progress || scanned || p.Driver.TakeReturnable()) && p.output() {
		progress = true
	}
	return progress
}

// output writes what has become possible or due by progress: acknowledgements, the rest of long
// messages, what waited for a window. It reports whether anything left, since a goroutine may wait
// for that.
func (p *Process) output() (progress bool) {
	p.Driver.TakeReturnable() // owed bytes are written now
	p.Endpoints.findRoutes()
	for _, q := range p.Endpoints.List {
		if q != nil && q.Due() && q.Flush() {
			progress = true
		}
	}
	return progress
}

// Event handles events of the poll set that belong to no endpoint: events of the waker and of the
// board's bell.
func (p *Process) Event(key uint32) (progress bool) {
	if key == boardKey {
		p.Boards.rung()
	}
	return true
}

// park sleeps until a link or the waker has an event. Other goroutines may use p meanwhile.
func (p *Process) park() {
	sleepless := p.output() || p.Node.news.Load() || p.Endpoints.lent > 0 && p.Endpoints.keepLent(true)
	sleepless = !p.Driver.ArmAll() || sleepless
	if p.tell() || sleepless || p.Failure != nil {
		p.giveWay()
		return
	}
	if len(p.Boards.members) > 0 || len(p.Boards.pending) > 0 {
		defer p.Boards.wakeFromBoards()
		if !p.Boards.sleepAtBoards() {
			p.giveWay()
			return
		}
	}
	p.rest.begin(p)
	p.Asleep = true
	events, err := p.Boards.doze()
	p.Asleep = false
	p.rest.end()
	if err != nil {
		p.SetFailed(err)
		return
	}
	p.Driver.Handle(events)
	p.output()
}

// Probing describes the wait of a goroutine in a probe, for reports.
type Probing struct {
	On   bool
	Env  message.Envelope
	From message.Peer

	ended uint64 // number of probes that have ended
}

// rest says since when the driver has been waiting for the same thing, with interruptions.
type rest struct {
	ended uint64 // count of events that end waits: if it is unchanged the wait is the same
	since time.Time

	began  time.Time // of the current sleep
	sleeps uint64
	slept  time.Duration // total, without the current sleep
}

func (r *rest) begin(p *Process) {
	ended := p.Eng.Completed() + p.Node.taken + p.Probing.ended + p.Boards.ended
	for _, s := range p.Boards.members {
		ended += uint64(s.Member.Ops)
	}
	r.began = time.Now()
	if r.since.IsZero() || r.ended != ended {
		r.ended, r.since = ended, r.began
	}
}

// Begin records that a goroutine waits in a probe.
func (b *Probing) Begin(env message.Envelope, from message.Peer) {
	b.On, b.Env, b.From = true, env, from
}

// End records that a probe that has waited has ended.
func (b *Probing) End() {
	b.On = false
	b.ended++
}

func (r *rest) end() {
	r.sleeps++
	r.slept += time.Since(r.began)
}

// doze sleeps without the lock for up to a time, negative for no limit, and takes the lock again
// even if the machine ends this proc meanwhile.
func (p *Process) doze(limit time.Duration) ([]poll.Event, error) {
	p.Mu.Unlock()
	defer p.Mu.Lock()
	if p.Native != nil {
		limit = p.Native.patience()
	}
	return p.Driver.Wait(limit)
}

// Send writes the packets of a send that was just started. Those of blocking calls leave at once.
// Of a series of non-blocking ones the first leaves at once; the others are held back until the
// program waits for something, until there are many bytes, or for flushAfter.
func (es *endpoints) Send(to message.Peer, size int, blocking bool) {
	id, ok := es.p.Eng.Route(to)
	if !ok {
		es.findRoutes()
		if id, ok = es.p.Eng.Route(to); !ok {
			return // the direct link is still being made
		}
	}
	q := es.List[id]
	if q == nil || !q.Due() {
		return
	}
	if es.p.Eng.NeedsAllowance(q.ID) && q.Receive() && es.List[id] != q {
		return // the link has broken
	}
	limit := holdBack
	if q.Memory() {
		size, limit = size+wire.HeaderSize, holdBackMemory
	}
	if blocking || es.p.Driving || !q.burst || q.held+size > limit {
		q.burst, q.awaited = !blocking, blocking
		q.Flush()
		q.awaited = false
		return
	}
	q.held += size
	es.deferred = true
	if !es.Armed {
		es.Armed = true
		es.Flusher.Reset(flushAfter)
	}
}

// IsendBytes starts a send of b, which is memory of the library.
func (es *endpoints) IsendBytes(to message.Peer, env message.Envelope, b []byte) *message.Request {
	r := es.p.Eng.Send(to, env, message.Standard, b, int64(len(b)), uint64(datatype.Byte))
	es.Send(to, len(b), true)
	return r
}

// IrecvBytes posts a receive into b.
func (es *endpoints) IrecvBytes(env message.Envelope, from message.Peer, b []byte) *message.Request {
	r := es.p.Eng.Recv(env, from, b)
	es.ReceivePosted(r)
	return r
}

// ReceivePosted is called after receive r was posted. If its message had come already, an answer
// must be sent, which leaves now unless it is held back with Isends.
func (es *endpoints) ReceivePosted(r *message.Request) {
	if r.Posted() {
		return
	}
	es.findRoutes()
	for _, q := range es.List {
		if q != nil && (q.held == 0 || es.p.Driving) && q.Due() {
			q.Flush()
		}
	}
	es.p.own(r)
}

// flushLate writes what is held back. It runs in the timer's goroutine.
func (es *endpoints) flushLate() {
	es.p.Lock()
	defer es.p.Unlock()
	es.Armed = false
	if es.deferred {
		es.FlushAll()
	}
}

// ProgressUntil blocks, making progress, until done returns true; done is called with p locked. It
// returns why p has failed, if that comes first.
func (p *Process) ProgressUntil(done func() bool) error {
	p.Lock()
	defer p.Unlock()
	for p.Failure == nil {
		if p.output(); done() {
			return nil
		}
		p.AwaitProgress()
	}
	return p.Failure
}
