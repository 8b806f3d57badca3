package host

import (
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// RunDirs returns the run directories of the processes of user uid below base or, if base
// is empty, in all places where NewRunDir would make one. If uid is this process's own
// user, directories of processes that have ended are removed first, unless another process
// is doing that. RunDirs does not wait for any lock.
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

// trySweep sweeps unless another process makes or removes directories at this moment.
func trySweep(parent string) {
	all, err := lock(filepath.Join(parent, "lock"), unix.LOCK_EX|unix.LOCK_NB)
	if err != nil {
		return
	}
	defer all.Close()
	sweep(parent)
}
