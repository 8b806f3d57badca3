package kernel

import "github.com/openimpi/impi/core/link"

// waitable is what has a handle, for Sets to wait for.
type waitable interface {
	OnReady(f func())
	readable() bool
	writable() bool
	gone() bool // it has left all sets by itself
}

// handle gives w its number.
func (k *Kernel) handle(w waitable) int {
	k.handles = append(k.handles, w)
	return len(k.handles) - 1
}

// bell calls whoever waits for something.
type bell struct {
	k      *Kernel
	notify func() // nil: nobody waits
	timer  *Timer // of the call
}

// ring has the call made soon, once.
func (b *bell) ring() {
	switch {
	case b.notify == nil:
	case b.timer == nil:
		b.timer = b.k.After(0, b.call)
	case b.timer.index < 0:
		b.timer.Reset(0)
	}
}

func (b *bell) call() {
	if b.notify != nil {
		b.notify()
	}
}

// Gate is a handle for what is no End itself but can be waited for like one, as
// a link that is made of links.
type Gate struct {
	ready  func(want link.Interest) bool
	number int
	closed bool
	bell
}

// NewGate makes a handle. ready tells whether one of want holds.
func (k *Kernel) NewGate(ready func(want link.Interest) bool) *Gate {
	g := &Gate{ready: ready, bell: bell{k: k}}
	g.number = k.handle(g)
	return g
}

// Handle is a number for Sets of this kernel.
func (g *Gate) Handle() int { return g.number }

// OnReady has f called, from the kernel, soon after Ring.
func (g *Gate) OnReady(f func()) {
	g.notify = f
	if f != nil && (g.readable() || g.writable()) {
		g.ring()
	}
}

// Ring lets whoever waits look whether what is waited for holds.
func (g *Gate) Ring() { g.ring() }

// Close takes the handle out of all sets.
func (g *Gate) Close() { g.closed, g.notify = true, nil }

func (g *Gate) readable() bool { return g.closed || g.ready(link.Readable) }
func (g *Gate) writable() bool { return g.closed || g.ready(link.Writable) }
func (g *Gate) gone() bool     { return g.closed }
