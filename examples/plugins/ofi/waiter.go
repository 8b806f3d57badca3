package main

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// waiter is where a node's goroutine sleeps: on the descriptor of the completion queue, in Go's
// poller, so that no thread is held; or on a timer, where the provider has no descriptor or the
// queue is polled by others.
type waiter struct {
	queue int      // the descriptor
	set   int      // descriptors; queue is in it only during a sleep: otherwise each message would wake a thread
	file  *os.File // of set, or nil
	raw   syscall.RawConn
	woken *atomic.Bool
	bell  chan struct{}
	timer *time.Timer
}

func newWaiter(fd int) (w waiter, err error) {
	w = waiter{woken: new(atomic.Bool), bell: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
	if fd < 0 {
		return w, nil
	}
	wrong := func(err error) error { return fmt.Errorf("wait for the completion queue: %w", err) }
	w.queue = fd
	if w.set, err = syscall.EpollCreate1(syscall.EPOLL_CLOEXEC); err != nil {
		return w, wrong(err)
	}
	if err := syscall.SetNonblock(w.set, true); err != nil { // package os polls only non-blocking files
		_ = syscall.Close(w.set)
		return w, wrong(err)
	}
	w.file = os.NewFile(uintptr(w.set), "completion queue")
	if err = w.file.SetReadDeadline(time.Time{}); err == nil { // fails if it is not in the poller
		w.raw, err = w.file.SyscallConn()
	}
	if err != nil {
		_ = w.file.Close()
		w.file = nil
		return w, wrong(err)
	}
	return w, nil
}

// sleep waits until wake is called, or for some time. If watch is set it ends as well when
// something may have completed, which ready reports for the time before.
func (w *waiter) sleep(limit time.Duration, watch bool, ready func() bool) {
	if !watch || w.file == nil {
		w.timer.Reset(limit)
		select {
		case <-w.bell:
		case <-w.timer.C:
		}
		return
	}
	_ = w.file.SetReadDeadline(time.Now().Add(limit)) // fails only if it is closed
	if w.woken.Swap(false) {
		return
	}
	slept := false
	_ = w.raw.Read(func(uintptr) bool { // its error is the expired deadline
		if slept {
			return true
		}
		slept = syscall.EpollCtl(w.set, syscall.EPOLL_CTL_ADD, w.queue, &syscall.EpollEvent{Events: syscall.EPOLLIN}) == nil && !ready()
		return !slept
	})
	_ = syscall.EpollCtl(w.set, syscall.EPOLL_CTL_DEL, w.queue, nil) // fails if it is not there
	w.woken.Store(false)
}

// wake ends the sleep, or the next one.
func (w *waiter) wake() {
	w.woken.Store(true)
	if w.file != nil {
		_ = w.file.SetReadDeadline(time.Unix(1, 0)) // fails only if it is closed
	}
	select {
	case w.bell <- struct{}{}:
	default:
	}
}

func (w *waiter) close() {
	if w.file != nil {
		_ = w.file.Close()
	}
}
