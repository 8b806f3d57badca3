// Package drive decides when links are read and written: which are polled at each step, when
// the poll set is asked about the others, how a waiter goes to sleep, and how links that resume
// are kept. Procs, the packet switches of hosts and the simulator have their links driven by it.
//
// It reads and writes nothing itself but through a Mover, starts no goroutine, and knows the time
// and the place to sleep only from its Machine. A Driver is for one goroutine at a time: whoever
// has the owner's lock, or the owner's loop.
package drive

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/internal/machine"
)

const (
	// MaxReads bounds how often one link is read before others have their turn.
	MaxReads = 4

	// busy is how many receives in a row polling must bring before a link leaves the poll
	// set until the next sleep: the set costs each arriving packet a detour, even when nobody
	// asks it.
	busy = 64
	// hotPorts is how many links are polled at each step, which is nothing to those that
	// are memory; hotCalls is how many of them may cost a system call.
	hotPorts = 4
	hotCalls = 2
	// stale is how many receives in a row must bring nothing before a link that costs a
	// system call leaves the hot ones to one that is memory.
	stale = 256
	// scanEvery is how many steps go by before the poll set is asked about the links that are
	// not hot.
	scanEvery = 16
	// ScanSeldom is the same where all hot ones are memory, beside which a system call is dear.
	ScanSeldom = 32
	// Looks is how often a step looks into memory before it does anything else: so often
	// that it takes as long as one system call that brings nothing.
	Looks = 8
)

// ErrNoHandle means that a link has no descriptor by which it could be waited for.
var ErrNoHandle = errors.New("the link has no descriptor to wait for")

// Machine is the clock, and the place to sleep.
type Machine interface {
	NewSet() (machine.Set, error)
	AfterFunc(d time.Duration, f func()) machine.Timer
	Now() time.Time
}

// Owner is who has a Driver.
type Owner interface {
	// Event is told of an event of the poll set that is no port's: of machine.WakeKey, which has
	// been cleared, or of a handle that the owner has put into the set. It reports whether it
	// brought anything.
	Event(key uint32) (progress bool)
	// SetFailed is told that the poll set has failed.
	SetFailed(err error)
	// Tend is called by the timer when Driver.Tend should be, from a goroutine of its own.
	Tend()
}

// Mover moves the bytes of one port between its link and those who read and write them.
type Mover interface {
	// Receive reads the link and reports whether anything came, or the link has ended.
	Receive() (progress bool)
	// Flush writes what there is, as far as the link takes it, and reports whether it took any.
	Flush() (progress bool)
	// Due reports whether there is something to write.
	Due() bool
	// Drop is told that the link is of no more use. It calls Driver.Remove.
	Drop(cause error)
}

// Port is a link that is driven. Its owner has it as a part of what he knows of the link.
type Port struct {
	Link      link.Link
	InPlace   link.Memory // Link, if packets can be written and read in its own memory; or nil
	Resumable *Resumable  // Link, perhaps behind a tracer, if it resumes; or nil
	Full      bool        // it did not take all of the last output

	mover    Mover
	key      uint32
	interest link.Interest // what the poll set waits for; 0: it is not in the set
	streak   int           // receives that polling brought since the last sleep
	misses   int           // receives in a row that brought nothing
	mute     bool          // only reading tells whether something came
	memory   bool          // reading it costs next to nothing
}

// Memory reports whether reading the link costs next to nothing.
func (p *Port) Memory() bool { return p.memory }

// Driver drives the links of one proc or host.
type Driver struct {
	// Wanted counts those who want the driver to come back to its owner: a step that looks
	// into memory for a while ends early for them.
	Wanted atomic.Int32

	machine Machine
	owner   Owner
	set     machine.Set
	ports   []*Port         // by key; nil once removed
	hot     [hotPorts]*Port // the last that brought something; nil ones are last
	mute    int             // ports of which only reading tells whether something came
	polls   uint            // made so far
	resumables
}

// New makes a driver without links.
func New(m Machine, o Owner) (*Driver, error) {
	set, err := m.NewSet()
	if err != nil {
		return nil, err
	}
	return &Driver{machine: m, owner: o, set: set}, nil
}

// Set is the place to sleep, for handles that are no links.
func (d *Driver) Set() machine.Set { return d.set }

// Wake ends the present sleep, or the next one. Anybody may call it at any time.
func (d *Driver) Wake() { d.set.Wake() }

// Close releases the poll set and what is left of links that resume, but no other link.
func (d *Driver) Close() error {
	d.hot = [hotPorts]*Port{}
	d.closeResumables()
	return d.set.Close()
}

// Add has p driven, whose Link is set; key is p's alone until Remove.
func (d *Driver) Add(p *Port, key uint32, m Mover) error {
	p.mover, p.key = m, key
	h := p.Link.Handle()
	if h != link.NoHandle {
		if err := d.set.Add(h, key, link.Readable); err != nil {
			return err
		}
		p.interest = link.Readable
	}
	p.memory = h != link.NoHandle && p.Link.Limits().Memory
	if h == link.NoHandle || p.memory {
		p.mute = true
		d.mute++
	}
	for int(key) >= len(d.ports) {
		d.ports = append(d.ports, nil)
	}
	d.ports[key] = p
	return nil
}

// Remove has p driven no longer. Its link is still open.
func (d *Driver) Remove(p *Port) {
	if !d.Has(p) {
		return
	}
	d.ports[p.key] = nil
	d.cool(p)
	if p.interest != 0 {
		_ = d.set.Remove(p.Link.Handle()) // a descriptor that is closed leaves the set by itself
		p.interest = 0
	}
	if p.mute {
		d.mute--
	}
}

// Has reports whether p is driven.
func (d *Driver) Has(p *Port) bool { return int(p.key) < len(d.ports) && d.ports[p.key] == p }

// Warm makes p one of the ports that are polled without asking the set first. The one
// that it displaces must be in the set.
func (d *Driver) Warm(p *Port) {
	if d.hot[0] == p {
		return
	}
	at := d.place(p)
	old := d.hot[at]
	copy(d.hot[1:at+1], d.hot[:at])
	d.hot[0] = p
	if old != nil && old != p && old.interest == 0 {
		d.arm(old)
	}
}

// place is where among the hot ports p is to be: its own place, a free one, or that of
// the one whose last message is longest ago. Of ports that cost a system call each time
// at most hotCalls are hot.
func (d *Driver) place(p *Port) int {
	calls, at := 0, len(d.hot)-1
	for i, h := range &d.hot {
		switch {
		case h == p:
			return i
		case h == nil:
			return min(at, i)
		case !h.memory && !p.memory:
			if calls++; calls == hotCalls {
				at = i
			}
		}
	}
	return at
}

// cool makes p none of the hot ports.
func (d *Driver) cool(p *Port) {
	if i := slices.Index(d.hot[:], p); i >= 0 {
		copy(d.hot[i:], d.hot[i+1:])
		d.hot[len(d.hot)-1] = nil
	}
}

// hit says that polling p brought something. One that is busy leaves the poll set, unless
// the set is to tell when it takes more.
func (d *Driver) hit(p *Port) {
	p.misses = 0
	if p.streak++; p.streak >= busy && p.interest == link.Readable {
		if d.set.Remove(p.Link.Handle()) == nil {
			p.interest = 0
		}
	}
}

// miss says that a system call was spent on p for nothing. If that goes on while another
// hot port is memory, which such calls delay, p is left to the set.
func (d *Driver) miss(p *Port) {
	if p.misses++; p.misses < stale {
		return
	}
	if !slices.ContainsFunc(d.hot[:], func(h *Port) bool { return h != nil && h.memory }) {
		return
	}
	d.cool(p)
	p.misses = 0
	if p.interest == 0 {
		d.arm(p)
	}
}
