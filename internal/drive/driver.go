// Package drive decides when links are read and written: which links are polled at each
// step, when the poll set is asked about the others, how a waiter goes to sleep, and how
// resumable links are repaired and given up. Procs, the packet switches of hosts and the
// simulator use it.
//
// It reads and writes links only through an EndpointIO, starts no goroutine, and gets the time
// and its place to sleep from its Machine. Only one goroutine at a time may use a Driver:
// the one that holds the owner's lock, or the owner's loop.
package drive

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/openimpi/impi/core/compress"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/plugins/sdk/link"
)

const (
	// MaxReads is the number of reads of one link before others have their turn; but see
	// Endpoint.Reads.
	MaxReads = 4

	// busy is how many receives in a row polling must bring before a link leaves the poll
	// set until the next sleep: a link in the set costs time for each packet that arrives,
	// even if the set is not asked.
	busy = 64
	// hotEndpoints is how many links are polled at each step; polling costs nearly nothing for
	// links in memory. hotCalls is how many of them may cost a system call.
	hotEndpoints = 4
	hotCalls     = 2
	// stale is how many receives in a row must bring nothing before a link that costs a
	// system call gives up its place among the polled ones to a link in memory.
	stale = 256
	// scanEvery is the number of steps after which the poll set is asked about the links
	// that are not polled directly.
	scanEvery = 16
	// MemoryScanEvery is used instead if all polled links are in memory: compared with those a
	// system call is expensive.
	MemoryScanEvery = 32
	// MemoryPolls is the number of polls of links in memory in a step before it does anything else:
	// together they take as long as one system call that returns nothing.
	MemoryPolls = 8
)

// ErrNoHandle means that a link has no descriptor on which a poll set could wait.
var ErrNoHandle = errors.New("the link has no descriptor to wait for")

// Machine provides the clock, timers and the poll set.
type Machine interface {
	NewSet() (machine.Set, error)
	AfterFunc(d time.Duration, f func()) machine.Timer
	Now() time.Time
}

// Owner is the proc or packet switch whose links a Driver drives.
type Owner interface {
	// Event handles an event of the poll set that does not belong to an endpoint: one with
	// machine.WakeKey, which has been cleared, or of a handle that the owner has added to
	// the set. It reports whether it made progress.
	Event(key uint32) (progress bool)
	// SetFailed is called if the poll set has failed.
	SetFailed(err error)
	// TimerFired is called by the timer, in a goroutine of its own, when Driver.OnTimer must be
	// called.
	TimerFired()
}

// EndpointIO moves the bytes of one endpoint between its link and the code that reads and writes
// them.
type EndpointIO interface {
	// Receive reads the link and reports whether anything came or the link has ended.
	Receive() (progress bool)
	// Flush writes what is queued, as far as the link accepts it, and reports whether the link
	// accepted any.
	Flush() (progress bool)
	// Due reports whether there is something to write.
	Due() bool
	// Drop is called when the link cannot be used any more. It calls Driver.Remove.
	Drop(cause error)
}

// Endpoint is a link that is driven. The owner embeds it in its own data about the link.
type Endpoint struct {
	Link       link.Link
	InPlace    link.Memory    // Link, if packets can be written and read in its memory; or nil
	Resumable  *Resumable     // Link, perhaps wrapped by a tracer, if it is resumable; or nil
	Compressed *compress.Link // Link, perhaps wrapped by a tracer, if it is compressed: see Compress; or nil
	Full       bool           // the link did not accept all of the last output

	mover    EndpointIO
	key      uint32
	interest link.Interest // what the poll set waits for; 0: it is not in the set
	streak   int           // receives in a row that brought something when polled, since the last sleep
	misses   int           // receives in a row that brought nothing
	mute     bool          // the poll set cannot report input, only a read finds it
	memory   bool          // reading costs next to nothing
}

// Memory reports whether reading the link costs next to nothing.
func (p *Endpoint) Memory() bool { return p.memory }

// Driver drives the links of one proc or host.
type Driver struct {
	// Wanted counts the goroutines that wait for the driver to return to its owner. If it
	// is not 0, a step that looks into memory for a while ends early.
	Wanted atomic.Int32
	// OtherEvent, if it is not nil, reports whether something has happened that no link shows. A step
	// that polls memory for a while calls OtherEvent as often.
	OtherEvent func() bool

	machine   Machine
	owner     Owner
	set       machine.Set
	endpoints []*Endpoint             // by key; nil after Remove
	hot       [hotEndpoints]*Endpoint // the endpoints that brought something most recently; nil entries come last
	mute      int                     // number of mute endpoints
	polls     uint                    // number of steps so far
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

// Set returns the poll set, so that the owner can add handles that are not links.
func (d *Driver) Set() machine.Set { return d.set }

// Wake ends the present sleep, or the next one. Any goroutine may call it at any time.
func (d *Driver) Wake() { d.set.Wake() }

// Close releases the poll set and what is left of resumable links, but no other link.
func (d *Driver) Close() error {
	d.hot = [hotEndpoints]*Endpoint{}
	d.closeResumables()
	return d.set.Close()
}

// Add begins to drive p, whose Link must be set. No other endpoint may use key until Remove.
func (d *Driver) Add(p *Endpoint, key uint32, m EndpointIO) error {
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
	for int(key) >= len(d.endpoints) {
		d.endpoints = append(d.endpoints, nil)
	}
	d.endpoints[key] = p
	return nil
}

// Remove stops driving p. It does not close the link.
func (d *Driver) Remove(p *Endpoint) {
	if !d.Has(p) {
		return
	}
	d.endpoints[p.key] = nil
	d.cool(p)
	if p.interest != 0 {
		_ = d.set.Remove(p.Link.Handle()) // a descriptor leaves the set by itself when it is closed
		p.interest = 0
	}
	if p.mute {
		d.mute--
	}
}

// Has reports whether p was added to this driver and not removed since.
func (d *Driver) Has(p *Endpoint) bool {
	return int(p.key) < len(d.endpoints) && d.endpoints[p.key] == p
}

// MakeHot makes p one of the endpoints that are polled at each step. The endpoint that it replaces
// must be in the poll set.
func (d *Driver) MakeHot(p *Endpoint) {
	if d.hot[0] == p {
		return
	}
	at := d.place(p)
	old := d.hot[at]
	copy(d.hot[1:at+1], d.hot[:at])
	d.hot[0] = p
	if old == nil || old == p || old.interest != 0 {
		return
	}
	if old.Resumable != nil {
		// Arming old would make it a polled endpoint again if it has something to do, and replace
		// another such one, without end. Before a sleep ArmAll finds what old has to do.
		old.streak = 0
		d.awaitResumable(old)
		return
	}
	d.arm(old)
}

// place returns where p goes among the polled endpoints: its own place, a free one, or that of
// the endpoint whose last message is oldest. At most hotCalls of the polled endpoints may cost a
// system call each time.
func (d *Driver) place(p *Endpoint) int {
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

func (d *Driver) cool(p *Endpoint) {
	if i := slices.Index(d.hot[:], p); i >= 0 {
		copy(d.hot[i:], d.hot[i+1:])
		d.hot[len(d.hot)-1] = nil
	}
}

// hit says that polling p brought something. A busy endpoint leaves the poll set, unless it is
// in the set for room to write.
func (d *Driver) hit(p *Endpoint) {
	p.misses = 0
	if p.streak++; p.streak >= busy && p.interest == link.Readable {
		if d.set.Remove(p.Link.Handle()) == nil {
			p.interest = 0
		}
	}
}

// miss says that a system call on p brought nothing. If that happens often while another
// polled endpoint is in memory, which such calls delay, p is left to the poll set.
func (d *Driver) miss(p *Endpoint) {
	if p.misses++; p.misses < stale {
		return
	}
	if !slices.ContainsFunc(d.hot[:], func(h *Endpoint) bool { return h != nil && h.memory }) {
		return
	}
	d.cool(p)
	p.misses = 0
	if p.interest == 0 {
		d.arm(p)
	}
}
