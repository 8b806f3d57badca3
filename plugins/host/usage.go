package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/openimpi/impi/plugins/sdk/proto"
)

// Usage is a process's use of the machine's resources.
type Usage struct {
	Resident    int64         // bytes of memory, including shared pages and those of its files
	Own         int64         // the part of these bytes that is not backed by a file and not shared
	CPU         time.Duration // user and system time, since the process began
	Descriptors int           // open descriptors
	Threads     int
}

func (u Usage) String() string {
	return fmt.Sprintf("%.1f MB (%.1f of its own), %v CPU, %d descriptors, %d threads",
		float64(u.Resident)/1e6, float64(u.Own)/1e6, u.CPU, u.Descriptors, u.Threads)
}

var errNoProcess = errors.New("the plugin has no process")

// Usage reads the figures of the plugin's process from /proc, if there is one.
func (p *Plugin) Usage() (Usage, error) {
	pid := p.Status().PID
	if pid == 0 {
		return Usage{}, errNoProcess
	}
	return UsageOf(pid)
}

// UsageOf reads the figures of a process from /proc.
func UsageOf(pid int) (u Usage, err error) {
	dir := fmt.Sprintf("/proc/%d", pid)
	list, err := os.ReadDir(dir + "/fd")
	if err != nil {
		return u, err
	}
	u.Descriptors = len(list)
	text, err := os.ReadFile(dir + "/status")
	if err != nil {
		return u, err
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64) // not a number: 0
		switch name {
		case "VmRSS":
			u.Resident = n << 10
		case "RssAnon":
			u.Own = n << 10
		case "Threads":
			u.Threads = int(n)
		}
	}
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return u, err
	}
	u.CPU, err = cpuOf(string(stat))
	return u, err
}

// tick is the unit of times in /proc/PID/stat: the kernel always reports 100 per second.
const tick = time.Second / 100

// cpuOf returns the processor time in /proc/PID/stat. The name of the process, in brackets,
// may contain any character.
func cpuOf(stat string) (time.Duration, error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	const user, system = 11, 12 // indexes of the fields after the name
	if len(fields) <= system {
		return 0, fmt.Errorf("/proc/PID/stat has %d fields behind the name", len(fields))
	}
	u, err := strconv.ParseInt(fields[user], 10, 64)
	s, err2 := strconv.ParseInt(fields[system], 10, 64)
	return time.Duration(u+s) * tick, errors.Join(err, err2)
}

// resent counts the packets that a plugin had to send again, over its processes.
type resent struct {
	of          *instance // instance whose count is in now
	now, before uint64    // before: total of earlier processes, as far as reported
}

func (r *resent) told(of *instance, n uint64) {
	if r.of != of {
		r.of, r.now, r.before = of, 0, r.before+r.now
	}
	r.now = max(r.now, n)
}

// Estimates returns what a plugin has measured of links whose bytes pass through its process: their
// smoothed round-trip times, and how many packets it had to send again, which never falls. passes
// is false for a plugin through which no bytes have passed; it is not asked. One that does not
// answer before ctx ends has no times.
func (p *Plugin) Estimates(ctx context.Context) (trips map[LinkID]time.Duration, resent uint64, passes bool) {
	p.mu.Lock()
	inst := p.cur
	p.mu.Unlock()
	var answer *proto.StatsResponse
	if inst != nil && inst.passing.Load() {
		answer, _ = inst.rpc.Stats(ctx, &proto.StatsRequest{Call: inst.call(ctx)}) // if it fails, there are no times
	}
	trips = make(map[LinkID]time.Duration)
	for _, l := range answer.GetLinks() {
		if ns := l.GetRoundTripNs(); ns > 0 && ns < uint64(longestTrip) {
			trips[inst.linkID(l.GetLinkId())] = time.Duration(ns)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if answer != nil {
		p.resent.told(inst, answer.GetRetransmits())
	}
	return trips, p.resent.before + p.resent.now, p.resent.of != nil
}

// longestTrip is more than a round trip takes.
const longestTrip = time.Hour
