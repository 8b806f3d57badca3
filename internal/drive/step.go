package drive

import (
	"slices"
	"time"

	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/poll"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// PollAll makes the next Step ask the poll set about all endpoints.
func (d *Driver) PollAll() { d.polls = 0 }

// PollsAll reports whether the next Step will ask the poll set about all endpoints because
// PollAll was called.
func (d *Driver) PollsAll() bool { return d.polls == 0 }

// Step polls once. Most steps read only the endpoints that were busy last. Some also ask the
// poll set about the others, however busy those are; scanned reports that.
func (d *Driver) Step() (progress, scanned bool) {
	if d.unmended.Load() {
		progress = d.Mend()
	}
	every := uint(scanEvery)
	if d.allInMemory() {
		every = MemoryScanEvery
		progress = d.pollMemory() || progress
	} else if d.poll() {
		progress = true
	}
	if d.mute > 0 && !progress {
		progress = d.pollMute()
	}
	scanned = d.polls%every == 0
	d.polls++
	if scanned && (d.scan() || d.readUnseen()) {
		progress = true
	}
	return progress, scanned
}

func (d *Driver) allInMemory() bool {
	for i, p := range &d.hot {
		if p == nil {
			return i > 0
		}
		if !p.memory {
			return false
		}
	}
	return true
}

// pollMemory polls several times, up to the first progress, if all polled endpoints are in memory.
func (d *Driver) pollMemory() (progress bool) {
	for i := 0; !d.poll(); i++ {
		if i == MemoryPolls || d.Wanted.Load() != 0 || d.OtherEvent != nil && d.OtherEvent() {
			return false
		}
		poll.Pause()
	}
	return true
}

func (d *Driver) poll() (progress bool) {
	for _, p := range d.hot {
		switch {
		case p == nil:
		case p.InPlace != nil && !p.Full && !p.InPlace.Ready(): // the cheapest check
		case p.mover.Receive():
			progress = true
			d.hit(p)
		case !p.memory:
			d.miss(p)
		case p.Full && p.mover.Flush(): // the poll set does not report that there is room again
			progress = true
		}
	}
	return progress
}

// pollMute reads the mute endpoints, which also shows whether they have ended.
func (d *Driver) pollMute() (progress bool) {
	for _, p := range d.endpoints {
		if p == nil || !p.mute || !p.mover.Receive() {
			continue
		}
		progress = true
		if d.Has(p) && !slices.Contains(d.hot[:], p) { // it was not dropped by Receive
			d.MakeHot(p)
		}
	}
	return progress
}

// readUnseen reads the resumable links that have bytes which the poll set cannot see.
func (d *Driver) readUnseen() (progress bool) {
	for _, r := range d.resumables.all {
		if r.Buffered() && d.Has(r.endpoint) && r.endpoint.mover.Receive() {
			progress = true
		}
	}
	return progress
}

// scan asks the poll set and moves the bytes of the endpoints that it names.
func (d *Driver) scan() (progress bool) {
	events, err := d.set.Wait(0)
	if err != nil {
		d.owner.SetFailed(err)
		return true
	}
	return d.Handle(events)
}

// Handle moves the bytes of the endpoints in the poll set's events. A handle that is ready but
// moves nothing does not count as progress: doorbells of links through memory may be left
// over.
func (d *Driver) Handle(events []poll.Event) (progress bool) {
	for _, ev := range events {
		if int64(ev.Key) >= int64(len(d.endpoints)) {
			if ev.Key == machine.WakeKey {
				d.set.Clear()
			}
			progress = d.owner.Event(ev.Key) || progress
			continue
		}
		p := d.endpoints[ev.Key]
		if p == nil {
			continue
		}
		if ev.Readable && p.mover.Receive() {
			progress = true
		}
		if !d.Has(p) {
			continue // it was dropped by Receive
		}
		if ev.Readable {
			d.MakeHot(p)
		}
		if ev.Writable {
			progress = d.drain(p) || progress
		}
	}
	return progress
}

// drain writes to an endpoint that has room again.
func (d *Driver) drain(p *Endpoint) (progress bool) {
	if p.Resumable != nil {
		p.Resumable.SendPending()
	}
	if p.mover.Due() {
		progress = p.mover.Flush()
	}
	if d.Has(p) && p.interest != 0 && p.interest != link.Readable && !p.mover.Due() {
		d.Await(p, link.Readable)
	}
	return progress
}

// ArmAll prepares all endpoints for a sleep. It returns false if there is something to do
// first.
func (d *Driver) ArmAll() bool {
	ready := !d.unmended.Load()
	for _, p := range d.endpoints {
		if p != nil && !d.arm(p) {
			ready = false
		}
	}
	return ready
}

// Wait sleeps until a link or Wake has an event, but at most for timeout; a negative one
// means without limit. It may be called without the owner's lock, after ArmAll.
func (d *Driver) Wait(timeout time.Duration) ([]poll.Event, error) { return d.set.Wait(timeout) }

// Rearm is for output to an endpoint while another goroutine sleeps: it makes the poll set
// report room to write. If it returns false, that goroutine must not sleep.
func (d *Driver) Rearm(p *Endpoint) bool { return d.arm(p) }

// arm tells the poll set what p waits for. If it returns false, the caller must not sleep.
func (d *Driver) arm(p *Endpoint) bool {
	want := link.Readable
	if p.mover.Due() {
		want |= link.Writable
	}
	p.streak = 0
	if p.Resumable != nil {
		return d.armResumable(p, want)
	}
	if p.Link.Handle() == link.NoHandle || !d.Await(p, want) {
		return false
	}
	return !p.Link.Arm(want)
}

// Await makes the poll set report when one of want holds for p. It returns false if p was
// dropped.
func (d *Driver) Await(p *Endpoint, want link.Interest) bool {
	if p.Resumable != nil {
		return d.awaitResumable(p)
	}
	if err := d.await(p, want); err != nil {
		p.mover.Drop(err)
		return false
	}
	return true
}

func (d *Driver) await(p *Endpoint, want link.Interest) error {
	if want == p.interest {
		return nil
	}
	wait := d.set.Modify
	if p.interest == 0 {
		wait = d.set.Add
	}
	if err := wait(p.Link.Handle(), p.key, want); err != nil {
		return err
	}
	p.interest = want
	return nil
}
