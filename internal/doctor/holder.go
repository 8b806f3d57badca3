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
		for _, d := range runDirs(p.Proc) {
			if !slices.Contains(dirs, d) {
				dirs = append(dirs, d)
			}
		}
	}
	best := started // a node's own word counts more than that of relatives
	for _, f := range links.Survey(context.Background(), dirs, holderLimit, links.Request{Here: true}) {
		near := slices.IndexFunc(kin, func(p relative) bool { return p.PID == f.About.PID })
		if f.Forwarded || near < 0 {
			continue
		}
		how := kin[near].is
		if who != "" && (how > best || how == best && f.About.Job != job) {
			continue
		}
		best, runs = how, f.About.Job == job
		switch how {
		case itself:
			who = fmt.Sprintf("node %d of job %s", has.PID, f.About.Job)
		case starter:
			who = fmt.Sprintf("process %d, a plugin of node %d of job %s", has.PID, f.About.PID, f.About.Job)
		case started:
			who = fmt.Sprintf("process %d, the launcher of job %s", has.PID, f.About.Job)
		}
	}
	switch {
	case who == "" && has != nil:
		name, _ := has.Comm() // the number says it as well
		who = fmt.Sprintf("process %d (%s)", has.PID, name)
	case runs:
		who += ", which runs,"
	}
	return who, runs
}

// kinship is what a process is to the one that has a port.
type kinship int

const (
	itself  kinship = iota
	starter         // what has started it, as a node its plugin
	started         // what it has started, as a launcher its nodes
)

// relative is what may be the node to which a process belongs that has a port.
type relative struct {
	procfs.Proc
	is kinship
}

// holders returns a process that has one of the sockets, and its kin.
func holders(all []procfs.Proc, sockets []string) (has *procfs.Proc, kin []relative) {
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
		switch {
		case has == nil:
		case p.PID == has.PID:
			kin = append(kin, relative{p, itself})
		case p.PID == parents[has.PID]:
			kin = append(kin, relative{p, starter})
		case parents[p.PID] == has.PID:
			kin = append(kin, relative{p, started})
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
