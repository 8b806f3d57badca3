package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const topology = "/sys/devices/system/cpu"

// Cores returns the cores that this process may use, ordered by their first CPU: for each the CPUs
// (hardware threads) that the process may use.
func Cores() ([]unix.CPUSet, error) {
	var usable unix.CPUSet
	if err := unix.SchedGetaffinity(0, &usable); err != nil {
		return nil, fmt.Errorf("the CPUs that may be used: %w", err)
	}
	return coresOf(usable, topology), nil
}

// coresOf groups CPUs by the lists of siblings below a folder. A CPU without such a list is a
// core of its own.
func coresOf(usable unix.CPUSet, folder string) []unix.CPUSet {
	var cores []unix.CPUSet
	number := map[string]int{} // index of the core in cores, by its list of siblings
	left := usable.Count()
	for cpu := 0; left > 0; cpu++ {
		if !usable.IsSet(cpu) {
			continue
		}
		left--
		list, err := os.ReadFile(filepath.Join(folder, fmt.Sprintf("cpu%d/topology/thread_siblings_list", cpu)))
		siblings := strings.TrimSpace(string(list))
		i, known := number[siblings]
		if err != nil || siblings == "" || !known {
			i = len(cores)
			cores = append(cores, unix.CPUSet{})
			number[siblings] = i
		}
		cores[i].Set(cpu)
	}
	return cores
}

// Spread returns the core of proc i of n; there must be at least n cores. Neighbours are as far
// apart as possible, and no two procs have the same core.
func Spread(cores []unix.CPUSet, i, n int) *unix.CPUSet {
	return &cores[i*len(cores)/n]
}

// bound calls f while this thread may run on cpus only, so that a process that f starts is bound
// from its first instruction. The caller has locked the thread. nil means all CPUs.
func bound(cpus *unix.CPUSet, f func() error) error {
	if cpus == nil {
		return f()
	}
	var before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return fmt.Errorf("the CPUs that may be used: %w", err)
	}
	if err := unix.SchedSetaffinity(0, cpus); err != nil {
		return fmt.Errorf("bind to CPUs: %w", err)
	}
	defer func() { _ = unix.SchedSetaffinity(0, &before) }() // the thread had these before; an error cannot be reported, and happens only if a CPU has gone meanwhile
	return f()
}
