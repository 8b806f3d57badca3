package pmixtest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// unreaped is how long all processes of an mpirun must have been dead before it is considered
// stuck.
const unreaped = 10 * time.Second

// Output runs an mpirun of this machine and returns what it and its processes have written. Open
// MPI 4.1's mpirun now and then does not notice that processes ended which did so as soon as they
// were started: they stay zombies, and it waits for ever. Such an mpirun is killed, and stuck is
// true. Processes that hang themselves are no zombies, and are waited for.
func Output(cmd *exec.Cmd) (out string, stuck bool, err error) {
	var all bytes.Buffer
	cmd.Stdout, cmd.Stderr = &all, &all
	if err := cmd.Start(); err != nil {
		return "", false, err
	}
	over, watched := make(chan struct{}), make(chan bool)
	go func() { watched <- watch(cmd.Process, over) }()
	err = cmd.Wait()
	close(over)
	stuck = <-watched
	return all.String(), stuck, err
}

// watch kills a process that leaves all its children unreaped, and reports whether it did.
func watch(parent *os.Process, over <-chan struct{}) (killed bool) {
	var since time.Time
	for {
		select {
		case <-over:
			return false
		case <-time.After(unreaped / 100):
		}
		switch {
		case !allZombies(parent.Pid):
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) > unreaped:
			_ = parent.Kill()
			return true
		}
	}
}

// allZombies reports whether a process has children, and all have ended.
func allZombies(parent int) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	zombies := 0
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // it has been reaped meanwhile
		}
		var state string
		var ppid int
		name := strings.LastIndexByte(string(b), ')')
		if _, err := fmt.Sscan(string(b[name+1:]), &state, &ppid); err != nil || ppid != parent {
			continue
		}
		if state != "Z" {
			return false
		}
		zombies++
	}
	return zombies > 0
}
