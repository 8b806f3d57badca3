package drive

import (
	"slices"
	"time"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/poll"
)

// Everywhere has the next Step look at all ports.
func (d *Driver) Everywhere() { d.polls = 0 }

// Step polls once. Most steps read the ports that were busy last and nothing else;
// some, of which scanned tells, ask the poll set about the rest, however busy those are.
func (d *Driver) Step() (progress, scanned bool) {
	if d.unmended.Load() {
		progress = d.Mend()
	}
	every := uint(scanEvery)
	if d.quick() {
		every = ScanSeldom
		progress = d.stare() || progress
	} else if d.look() {
		progress = true
	}
	if d.mute > 0 && !progress {
		progress = d.lookAround()
	}
	scanned = d.polls%every == 0
	d.polls++
	if scanned && (d.scan() || d.lookStirred()) {
		progress = true
	}
	return progress, scanned
}

// quick reports whether nothing but memory is hot.
func (d *Driver) quick() bool {
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

// stare is look for ports that are memory.
func (d *Driver) stare() (progress bool) {
	for i := 0; !d.look(); i++ {
		if i == Looks || d.Wanted.Load() != 0 {
			return false
		}
		poll.Pause()
	}
	return true
}

// look reads the hot ports.
func (d *Driver) look() (progress bool) {
	for _, p := range d.hot {
		switch {
		case p == nil:
		case p.InPlace != nil && !p.Full && !p.InPlace.Ready(): // quickest of all
		case p.mover.Receive():
			progress = true
			d.hit(p)
		case !p.memory:
			d.miss(p)
		case p.Full && p.mover.Flush(): // nobody else tells that there is room again
			progress = true
		}
	}
	return progress
}

// lookAround reads the ports that only reading tells about: of their end, too.
func (d *Driver) lookAround() (progress bool) {
	for _, p := range d.ports {
		if p == nil || !p.mute || !p.mover.Receive() {
			continue
		}
		progress = true
		if d.Has(p) && !slices.Contains(d.hot[:], p) { // Receive has not dropped it
			d.Warm(p)
		}
	}
	return progress
}

// lookStirred reads the links that resume and have bytes of which the poll set knows nothing.
func (d *Driver) lookStirred() (progress bool) {
	for _, r := range d.resumables.all {
		if r.Stirred() && d.Has(r.port) && r.port.mover.Receive() {
			progress = true
		}
	}
	return progress
}

// scan asks the poll set and moves what it names.
func (d *Driver) scan() (progress bool) {
	events, err := d.set.Wait(0)
	if err != nil {
		d.owner.SetFailed(err)
		return true
	}
	return d.Handle(events)
}

// Handle moves what events of the poll set name. A handle that is ready and moves nothing is
// no progress: bells of links through memory may be left over.
func (d *Driver) Handle(events []poll.Event) (progress bool) {
	for _, ev := range events {
		if int64(ev.Key) >= int64(len(d.ports)) {
			if ev.Key == machine.WakeKey {
				d.set.Clear()
			}
			progress = d.owner.Event(ev.Key) || progress
			continue
		}
		p := d.ports[ev.Key]
		if p == nil {
			continue
		}
		if ev.Readable && p.mover.Receive() {
			progress = true
		}
		if !d.Has(p) {
			continue // Receive has dropped it
		}
		if ev.Readable {
			d.Warm(p)
		}
		if ev.Writable {
			progress = d.drain(p) || progress
		}
	}
	return progress
}

// drain writes to a port that takes more.
func (d *Driver) drain(p *Port) (progress bool) {
	if p.Resumable != nil {
		p.Resumable.Push()
	}
	if p.mover.Due() {
		progress = p.mover.Flush()
	}
	if d.Has(p) && p.interest != 0 && p.interest != link.Readable && !p.mover.Due() {
		d.Await(p, link.Readable)
	}
	return progress
}

// ArmAll readies all ports for a sleep. False: there is something to do first.
func (d *Driver) ArmAll() bool {
	ready := !d.unmended.Load()
	for _, p := range d.ports {
		if p != nil && !d.arm(p) {
			ready = false
		}
	}
	return ready
}

// Wait sleeps until a link, or Wake, has something, but for up to timeout; a negative one
// has no end. It may be called without the owner's lock, after ArmAll.
func (d *Driver) Wait(timeout time.Duration) ([]poll.Event, error) { return d.set.Wait(timeout) }

// Rearm is for output to a port while another goroutine sleeps: the set is to tell once the
// port takes more. False: that goroutine must not sleep.
func (d *Driver) Rearm(p *Port) bool { return d.arm(p) }

// arm tells the poll set what p waits for. False means that we must not sleep.
func (d *Driver) arm(p *Port) bool {
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

// Await has the set tell when one of want holds of p. False: p has been dropped.
func (d *Driver) Await(p *Port, want link.Interest) bool {
	if p.Resumable != nil {
		return d.awaitResumable(p)
	}
	if err := d.await(p, want); err != nil {
		p.mover.Drop(err)
		return false
	}
	return true
}

func (d *Driver) await(p *Port, want link.Interest) error {
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
