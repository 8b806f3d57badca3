package node

import (
	"syscall"
)

// passSignals passes the operator's signals on to the procs until stop is called. Signals wait
// until the procs are in MPI: before that there may be no proc yet, or one without a handler for
// the signal.
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
				n.signal(s.(syscall.Signal))
			case <-quit:
				return
			}
		}
	}()
	return func() { close(quit); <-done }
}

// signal sends a signal to the procs that run here.
func (n *node) signal(s syscall.Signal) {
	if n.opt.spawned == nil {
		n.cluster.PassSignal(s)
		n.spawner.Signal(s)
	}
	n.procs.Signal(s)
}
