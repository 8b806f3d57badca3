package doctor

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// roomFor returns how much memory procs can share, how much of that is free, and what limits it:
// the machine, or a control group that this process is in. Procs share memory by memfd, so /dev/shm
// and its size do not matter. total is 0 if it is not known.
func (m *machine) roomFor() (total, free uint64, of string) {
	total, free = m.meminfo("MemTotal"), m.meminfo("MemAvailable")
	of = "the machine's memory (/dev/shm is not used)"
	if total == 0 {
		return 0, 0, ""
	}
	for _, dir := range m.memoryGroups() {
		for ; strings.HasPrefix(dir, m.groups); dir = filepath.Dir(dir) { // a group has no more memory than its ancestors
			limit, used, found := groupLimit(dir)
			if !found {
				continue
			}
			left := limit - min(used, limit)
			if limit < total && left <= free {
				total, free, of = limit, left, "the limit of the control group "+dir
			}
		}
	}
	return total, free, of
}

// meminfo returns the value of a line of /proc/meminfo in bytes, or 0 if there is no such line.
func (m *machine) meminfo(name string) uint64 {
	b, err := os.ReadFile(m.proc + "/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == name+":" {
			kb, _ := strconv.ParseUint(f[1], 10, 54) // 0 if it is no number
			return kb << 10
		}
	}
	return 0
}

func (m *machine) memoryGroups() (dirs []string) {
	b, err := os.ReadFile(m.proc + "/self/cgroup")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(b)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(f) != 3:
		case f[1] == "": // cgroup version 2
			dirs = append(dirs, filepath.Join(m.groups, f[2]))
		case strings.Contains(","+f[1]+",", ",memory,"):
			dirs = append(dirs, filepath.Join(m.groups, "memory", f[2]))
		}
	}
	return dirs
}

func groupLimit(dir string) (limit, used uint64, found bool) {
	for _, names := range [][2]string{{"memory.max", "memory.current"}, {"memory.limit_in_bytes", "memory.usage_in_bytes"}} {
		l, err1 := number(filepath.Join(dir, names[0]))
		u, err2 := number(filepath.Join(dir, names[1]))
		if err1 == nil && err2 == nil {
			return l, u, true
		}
	}
	return 0, 0, false // no limit: "max"
}

func number(path string) (uint64, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
}
