package native

import "runtime"

type thread struct {
	work chan func()
	done chan struct{}
}

func newThread() *thread {
	t := &thread{make(chan func()), make(chan struct{})}
	go func() {
		runtime.LockOSThread()
		for f := range t.work {
			f()
			t.done <- struct{}{}
		}
	}()
	return t
}

func (t *thread) run(f func()) {
	t.work <- f
	<-t.done
}
