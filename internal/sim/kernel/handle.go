package kernel

type waitable interface {
	OnReady(f func())
	readable() bool
	writable() bool
	gone() bool // it has left all sets by itself
}

func (k *Kernel) handle(w waitable) int {
	k.handles = append(k.handles, w)
	return len(k.handles) - 1
}

// bell calls a function some time after it is rung.
type bell struct {
	k      *Kernel
	notify func() // nil: nothing waits
	timer  *Timer // of the call
}

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

// Bell is a handle that is readable from Wake until Clear. It implements machine.Bell.
type Bell struct {
	bell
	number int
	rung   bool
}

// NewBell makes a Bell that is not readable, with a handle for Sets of this kernel.
func (k *Kernel) NewBell() *Bell {
	b := &Bell{bell: bell{k: k}}
	b.number = k.handle(b)
	return b
}

// FD returns the number by which a poll set identifies the Bell, as it would a file descriptor.
func (b *Bell) FD() int { return b.number }

// Wake implements machine.Bell.
func (b *Bell) Wake() {
	b.rung = true
	b.ring()
}

// Clear makes the Bell unreadable again.
func (b *Bell) Clear() { b.rung = false }

// OnReady makes the kernel call f soon after Wake.
func (b *Bell) OnReady(f func()) {
	b.notify = f
	if f != nil && b.rung {
		b.ring()
	}
}

func (b *Bell) readable() bool { return b.rung }
func (b *Bell) writable() bool { return false }
func (b *Bell) gone() bool     { return false }
