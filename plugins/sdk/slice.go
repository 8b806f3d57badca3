package sdk

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// slice is how long the kernel lets a thread of the plugin run before others have
// their turn, in nanoseconds: the least that it takes.
//
// A plugin that passes messages on runs for a moment and sleeps again, and the procs that
// wait for it poll meanwhile. The kernel protects a thread that runs from one that
// wakes up, unless the latter has asked for a shorter slice (Linux 6.12 and later;
// others take no notice). Without it a wake-up waits until a proc gives up its core.
const slice = 100_000

// askForShortSlices does so for all threads of the process; those that they make
// inherit it. Where the operator has chosen another policy than the default,
// nothing changes. It is no error if it is not possible: messages are slower then.
func askForShortSlices() {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, task := range tasks {
		if tid, err := strconv.Atoi(task.Name()); err == nil {
			_ = askForShortSlice(tid)
		}
	}
}

func askForShortSlice(tid int) error {
	attr, err := unix.SchedGetAttr(tid, 0)
	if err != nil || attr.Policy != unix.SCHED_NORMAL {
		return err
	}
	attr.Runtime = slice
	return unix.SchedSetAttr(tid, attr, 0)
}
