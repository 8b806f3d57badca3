package doctor

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/procfs"

	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/plugins/host"
)

// holderLimit is how long running nodes have to say whose they are.
const holderLimit = time.Second

// PortHolder returns which running node of the job of that name listens at a TCP port, by itself or by one of
// its plugins, or "" if none does.
func PortHolder(job string, port uint16) string {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return ""
	}
	sockets := listening(fs, port)
	c := links.NewChoice()
	for _, f := range links.Survey(context.Background(), host.RunDirs(c.RunDir, c.UID), holderLimit, links.Request{Here: true}) {
		if f.About.Job == job && !f.Forwarded && hasSocket(fs, f.About.PID, sockets) {
			return fmt.Sprintf("node %d of job %s, which runs,", f.About.PID, job)
		}
	}
	return ""
}

// listening are the sockets that listen at a port, as descriptors name them.
func listening(fs procfs.FS, port uint16) (sockets []string) {
	const listens = 10 // TCP_LISTEN
	four, _ := fs.NetTCP()
	six, _ := fs.NetTCP6() // there may be none
	for _, l := range append(four, six...) {
		if l.St == listens && l.LocalPort == uint64(port) {
			sockets = append(sockets, "socket:["+strconv.FormatUint(l.Inode, 10)+"]")
		}
	}
	return sockets
}

// hasSocket reports whether a process, or one that it has started, has one of the sockets.
func hasSocket(fs procfs.FS, pid int, sockets []string) bool {
	all, _ := fs.AllProcs()
	for _, p := range all {
		if s, err := p.Stat(); p.PID != pid && (err != nil || s.PPID != pid) {
			continue
		}
		targets, _ := p.FileDescriptorTargets()
		if slices.ContainsFunc(targets, func(t string) bool { return slices.Contains(sockets, t) }) {
			return true
		}
	}
	return false
}
