package host

import (
	"os/exec"
	"runtime"
	"sync"
)

// starter is the thread that starts all plugins. The kernel sends a child its parent-death
// signal when the thread that forked it ends, not the process, so this thread lives as long
// as the process.
var starter struct {
	once sync.Once
	jobs chan func()
}

// startProcess is cmd.Start on that thread.
func startProcess(cmd *exec.Cmd) error {
	starter.once.Do(func() {
		starter.jobs = make(chan func())
		go serveStarts(starter.jobs)
	})
	done := make(chan error)
	starter.jobs <- func() { done <- cmd.Start() }
	return <-done
}

func serveStarts(jobs <-chan func()) {
	runtime.LockOSThread()
	for job := range jobs {
		job()
	}
}
