package conformance

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// usage is what a process holds.
type usage struct {
	descriptors, threads int
	resident             int64 // bytes of its own: shared memory is not counted
}

func (u usage) String() string {
	return fmt.Sprintf("%d descriptors, %d threads and %.1f MB", u.descriptors, u.threads, float64(u.resident)/1e6)
}

// usageOf looks at a process.
func usageOf(pid int) (u usage, err error) {
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return u, err
	}
	u.descriptors = len(list)
	fields, err := statusOf(strconv.Itoa(pid))
	if err != nil {
		return u, err
	}
	u.threads, _ = strconv.Atoi(fields["Threads"])
	kb, _ := strconv.ParseInt(strings.TrimSuffix(fields["RssAnon"], " kB"), 10, 64)
	u.resident = kb << 10
	return u, nil
}

// statusOf reads /proc/PID/status.
func statusOf(pid string) (map[string]string, error) {
	text, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return nil, err
	}
	fields := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		fields[name] = strings.TrimSpace(value)
	}
	return fields, nil
}

func parentOf(pid string) int {
	fields, _ := statusOf(pid) // it may have ended
	parent, _ := strconv.Atoi(fields["PPid"])
	return parent
}

func stateOf(pid string) string {
	fields, _ := statusOf(pid)
	state, _, _ := strings.Cut(fields["State"], " ")
	return state
}
