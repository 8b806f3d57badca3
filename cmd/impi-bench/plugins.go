package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// pluginTransports are the transports of impi-node, each of which is a plugin of its own.
func pluginTransports() []string {
	return slices.DeleteFunc(insideNames(), func(name string) bool { return name == secureTCP })
}

// pluginBytes is the resident memory of all plugins of this rank's node together:
// of the node's children that run another program than this one. Pages that
// plugins share are counted for each of them.
func pluginBytes() (total int64, err error) {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return 0, err
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	found := 0
	for _, stat := range stats {
		dir := filepath.Dir(stat)
		if parentOf(stat) != os.Getppid() {
			continue
		}
		if exe, err := os.Readlink(filepath.Join(dir, "exe")); err != nil || exe == self {
			continue // a rank, or a child that has just ended
		}
		n, err := residentBytes(filepath.Join(dir, "statm"))
		if err != nil {
			return 0, err
		}
		total += n
		found++
	}
	if found != len(pluginTransports()) {
		return 0, fmt.Errorf("the node has %d plugins, want %d", found, len(pluginTransports()))
	}
	return total, nil
}

// parentOf returns the parent in the content of /proc/PID/stat, or 0 if that process has
// ended. The process name in it may have spaces and parentheses.
func parentOf(stat string) int {
	b, err := os.ReadFile(stat)
	if err != nil {
		return 0
	}
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	pid, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return 0
	}
	return pid
}
