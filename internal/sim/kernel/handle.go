package kernel

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
