// Package launch starts processes that must not outlive their starter, watches how they end, and
// merges their output line by line.
package launch

import (
	"errors"
	"runtime"
	"sync"
)

// ErrStopped is the error of Start after Close.
var ErrStopped = errors.New("launcher is closed")

// Launcher starts processes from one OS thread of its own. The kernel sends a process its
// parent-death signal when the thread that started it ends, and Go may end any thread; this one
// lives until Close.
type Launcher struct {
	work chan func()
	quit chan struct{}
	done chan struct{}
	once sync.Once
}

// New returns a Launcher and starts its thread.
func New() *Launcher {
	l := &Launcher{work: make(chan func()), quit: make(chan struct{}), done: make(chan struct{})}
	go l.run()
	return l
}

func (l *Launcher) run() {
	defer close(l.done)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread() // the thread stays, so that no process gets the signal
	for {
		select {
		case f := <-l.work:
			f()
		case <-l.quit:
			return
		}
	}
}

// do runs f on the thread and waits for it.
func (l *Launcher) do(f func()) error {
	ran := make(chan struct{})
	select {
	case l.work <- func() { f(); close(ran) }:
		<-ran
		return nil
	case <-l.quit:
		return ErrStopped
	}
}

// Close returns the thread to the runtime. Processes that still run may then be killed at any time:
// wait for them first.
func (l *Launcher) Close() {
	l.once.Do(func() { close(l.quit) })
	<-l.done
}
