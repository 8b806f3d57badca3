package host

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Usage is what a process takes of the machine.
type Usage struct {
	Resident    int64         // bytes of memory, shared ones and those of its file included
	Own         int64         // bytes of these that are in no file and shared with nobody
	CPU         time.Duration // user and system, since it began
	Descriptors int           // open
	Threads     int
}

// String is a line for operators.
func (u Usage) String() string {
	return fmt.Sprintf("%.1f MB (%.1f of its own), %v CPU, %d descriptors, %d threads",
		float64(u.Resident)/1e6, float64(u.Own)/1e6, u.CPU, u.Descriptors, u.Threads)
}

var errNoProcess = errors.New("the plugin has no process")

// Usage looks at the plugin's process, if there is one, without asking it.
func (p *Plugin) Usage() (Usage, error) {
	pid := p.Status().PID
	if pid == 0 {
		return Usage{}, errNoProcess
	}
	return UsageOf(pid)
}

// UsageOf looks at a process.
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
		n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64) // 0 for words
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

// tick is the unit of /proc/PID/stat: the kernel reports 100 per second to everybody.
const tick = time.Second / 100

// cpuOf takes the processor's time from /proc/PID/stat. The name of the process, in
// brackets, may have anything in it.
func cpuOf(stat string) (time.Duration, error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	const user, system = 11, 12 // of those behind the name
	if len(fields) <= system {
		return 0, fmt.Errorf("/proc/PID/stat has %d fields behind the name", len(fields))
	}
	u, err := strconv.ParseInt(fields[user], 10, 64)
	s, err2 := strconv.ParseInt(fields[system], 10, 64)
	return time.Duration(u+s) * tick, errors.Join(err, err2)
}
