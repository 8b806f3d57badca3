package conformance

import (
	"os"
	"strconv"
	"strings"
)

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
