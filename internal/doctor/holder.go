package doctor

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/plugins/host"
)

// holderLimit is how long running nodes have to say whose they are.
const holderLimit = time.Second

// PortHolder returns which process of this machine listens at a TCP port, by itself or by one of
// its plugins, or "" if that cannot be found out. runs reports whether it is of the job of that
// name, wherever its run directory is.
func PortHolder(job string, port uint16) (who string, runs bool) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return "", false
	}
	all, _ := fs.AllProcs()
	has, kin := holders(all, listening(fs, port))
	c := links.NewSelection()
	dirs := host.RunDirs(c.RunDir, c.UID)
	for _, p := range kin {
		for _, d := range runDirs(p) {
			if !slices.Contains(dirs, d) {
				dirs = append(dirs, d)
			}
		}
	}
	for _, f := range links.Survey(context.Background(), dirs, holderLimit, links.Request{Here: true}) {
		if f.Forwarded || !slices.ContainsFunc(kin, func(p procfs.Proc) bool { return p.PID == f.About.PID }) {
			continue
		}
		if who = fmt.Sprintf("node %d of job %s", f.About.PID, f.About.Job); f.About.Job == job {
			return who + ", which runs,", true
		}
	}
	if who == "" && has != nil {
		name, _ := has.Comm() // the number says it as well
		who = fmt.Sprintf("process %d (%s)", has.PID, name)
	}
	return who, false
}

// holders returns a process that has one of the sockets, and what may be the node to which it
// belongs: itself, what has started it as its plugin, and what it has started as their launcher.
func holders(all []procfs.Proc, sockets []string) (has *procfs.Proc, kin []procfs.Proc) {
	parents := make(map[int]int)
	for i, p := range all {
		if s, err := p.Stat(); err == nil {
			parents[p.PID] = s.PPID
		}
		targets, _ := p.FileDescriptorTargets() // those of others cannot be read
		if has == nil && slices.ContainsFunc(targets, func(t string) bool { return slices.Contains(sockets, t) }) {
			has = &all[i]
		}
	}
	for _, p := range all {
		if has != nil && (p.PID == has.PID || p.PID == parents[has.PID] || parents[p.PID] == has.PID) {
			kin = append(kin, p)
		}
	}
	return has, kin
}

// runDirs returns the run directories of a process, whose lock it has open.
func runDirs(p procfs.Proc) (dirs []string) {
	targets, _ := p.FileDescriptorTargets()
	for _, t := range targets {
		if dir := filepath.Dir(t); filepath.Base(t) == "lock" && strings.HasPrefix(filepath.Base(filepath.Dir(dir)), "impi-") {
			dirs = append(dirs, dir)
		}
	}
	return dirs
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
