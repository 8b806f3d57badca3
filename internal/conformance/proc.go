package conformance

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

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

// awake says whether a thread of the process runs or waits for a core.
func awake(pid string) bool {
	threads, _ := filepath.Glob("/proc/" + pid + "/task/*") // the pattern is sound
	return slices.ContainsFunc(threads, func(thread string) bool {
		state := stateOf(pid + "/task/" + filepath.Base(thread))
		return state == "R" || state == "D"
	})
}

func stateOf(pid string) string {
	fields, _ := statusOf(pid)
	state, _, _ := strings.Cut(fields["State"], " ")
	return state
}
