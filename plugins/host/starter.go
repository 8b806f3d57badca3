package host

import (
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// startProcess is cmd.Start on a thread of the process's own, which ends when over is closed. What
// the thread may not do the process may not either, and the kernel sends a child its parent-death
// signal when the thread that forked it ends. restrict takes rights from the thread.
func startProcess(cmd *exec.Cmd, restrict func() error, over <-chan struct{}) error {
	started := make(chan error, 1)
	go onThread(func() {
		err := restrict()
		if err == nil {
			err = cmd.Start()
		}
		started <- err
		if err == nil {
			<-over
		}
	})
	return <-started
}

// onThread runs f on a thread that ends with it. That is not the first one of this process: it
// cannot end, and what others may do with the process depends on its rights.
func onThread(f func()) {
	runtime.LockOSThread() // never unlocked, so the thread ends with this goroutine
	if unix.Gettid() != unix.Getpid() {
		f()
		return
	}
	elsewhere := make(chan struct{})
	go onThread(func() {
		close(elsewhere)
		f()
	})
	<-elsewhere // with this thread taken, the other goroutine gets another one
	runtime.UnlockOSThread()
}
