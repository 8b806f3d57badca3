package mpi

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// InfoEnv tells how this proc was started (MPI_INFO_ENV), or is nil before Init:
// "command", "argv", "maxprocs", "host", "arch", "wdir" and "thread_level", as far
// as they are known. It cannot be changed.
func InfoEnv() *Info {
	theLock.Lock()
	defer theLock.Unlock()
	if the == nil {
		return nil
	}
	return the.env()
}

// env is made at the first call, as few programs ask.
func (p *process) env() *Info {
	p.environment.Do(func() {
		wdir, _ := os.Getwd() // unknown is possible
		host := ProcessorName()
		p.info = environment(os.Args, len(p.job.Procs), host, wdir)
	})
	return p.info
}

// environment leaves out what is unknown or longer than a value can be.
func environment(args []string, procs int, host, wdir string) *Info {
	i := &Info{readOnly: true}
	if len(args) == 0 { // whoever started us can do that
		args = []string{""}
	}
	for _, p := range []infoPair{
		{"command", args[0]},
		{"argv", strings.Join(args[1:], " ")},
		{"maxprocs", strconv.Itoa(procs)},
		{"host", host},
		{"arch", runtime.GOARCH},
		{"wdir", wdir},
		{"thread_level", "MPI_THREAD_MULTIPLE"},
	} {
		if p.value != "" && len(p.value) <= MaxInfoValue {
			i.pairs = append(i.pairs, p)
		}
	}
	return i
}
