package nativelaunch

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/internal/launch"
	"github.com/openimpi/impi/internal/procs"
)

// parents are the processes that have started the procs of this host: daemons of the launcher on
// this machine, such as hydra_pmi_proxy or orted. A launcher may wait forever for one that was
// killed, and its procs live on.
type parents struct {
	adopter *launch.ProcessWatcher
	over    chan struct{} // closed when their ends do not matter any more
}

// followParents reports a parent that ends and leaves procs behind.
func (l *Launch) followParents(joined []procs.Joined) {
	a, err := launch.NewProcessWatcher()
	if err != nil {
		l.Log.Warn("the daemons of the launcher are not followed", "reason", err)
		return
	}
	l.parents = parents{a, make(chan struct{})}
	children := map[int][]*launch.Process{}
	for _, j := range joined {
		parent := parentOf(j.PID)
		if parent <= 1 || parent == os.Getpid() || l.process != nil && parent == l.process.PID() {
			continue // it is the launcher, which is followed, or has left its proc on purpose
		}
		if p, err := a.Watch(j.PID); err == nil { // else it has ended
			children[parent] = append(children[parent], p)
		}
	}
	for pid, started := range children {
		name := commandOf(pid)
		if p, err := a.Watch(pid); err == nil {
			go l.followParent(p, name, started)
		}
	}
}

func (l *Launch) followParent(parent *launch.Process, name string, children []*launch.Process) {
	<-parent.Exited()
	limit := time.NewTimer(endTime)
	defer limit.Stop()
	for _, c := range children {
		select {
		case <-c.Exited():
		case <-l.parents.over:
			return
		case <-limit.C:
			l.fail(&ending.Failure{
				Text: fmt.Sprintf("site %s: %s (process %d), which had started procs of the site's own MPI on host %v, has ended without them",
					l.Routes.Site.Name, name, parent.PID(), l.hosts()[l.self()]),
				Status: ending.StatusNode, Precedence: ending.Lost,
			})
			return
		}
	}
}

func (p *parents) close() {
	if p.adopter != nil {
		close(p.over)
		p.adopter.Close()
	}
}

// parentOf is the parent of a process, or 0 if that has ended.
func parentOf(pid int) int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := bytes.Cut(b[bytes.LastIndexByte(b, ')')+1:], []byte(" ")) // the name may contain any byte
	if fields := strings.Fields(string(rest)); len(fields) > 1 {
		parent, _ := strconv.Atoi(fields[1])
		return parent
	}
	return 0
}

func commandOf(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return strings.TrimSpace(string(b))
}
