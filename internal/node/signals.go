package node

import (
	"syscall"
)

// passSignals passes the operator's signals on to the procs until stop is called. Those that
// come before the procs are in MPI wait: they would find no proc, or end one that has not said
// yet what they mean.
func (n *node) passSignals() (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-n.ready:
		case <-quit:
			return
		}
		for {
			select {
			case s := <-n.opt.Signals:
				n.signal(s)
			case <-quit:
				return
			}
		}
	}()
	return func() { close(quit); <-done }
}

// signal sends a signal to the procs that run here.
func (n *node) signal(s syscall.Signal) {
	n.others.PassSignal(s)
	n.procs.Signal(s)
	if n.opt.spawned == nil {
		n.spawner.Signal(s)
	}
}
