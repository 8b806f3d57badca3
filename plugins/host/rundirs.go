package host

import (
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// RunDirs lists the run directories of user uid's processes below base, or in all
// places where NewRunDir would make one. If they are this process's own user's,
// those of processes that are no more are swept away before, unless somebody
// else is at it. It does not wait for anybody.
func RunDirs(base string, uid int) (dirs []string) {
	seen := make(map[string]bool)
	for _, b := range baseDirs(base) {
		parent := filepath.Join(b, "impi-"+strconv.Itoa(uid))
		if seen[parent] {
			continue
		}
		seen[parent] = true
		if uid == os.Geteuid() {
			if CheckRunDir(parent) != nil {
				continue
			}
			trySweep(parent)
		}
		entries, err := os.ReadDir(parent)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if e.IsDir() {
				dirs = append(dirs, filepath.Join(parent, e.Name()))
			}
		}
	}
	return dirs
}

// trySweep sweeps if nobody makes or sweeps directories at this moment.
func trySweep(parent string) {
	all, err := lock(filepath.Join(parent, "lock"), unix.LOCK_EX|unix.LOCK_NB)
	if err != nil {
		return
	}
	defer all.Close()
	sweep(parent)
}
