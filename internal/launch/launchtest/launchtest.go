// Package launchtest has what tests need that start processes: this program itself, a folder for
// their sockets, and the end of processes that are not children.
package launchtest

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Self returns the path of the test's own program.
func Self(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// ShortDir makes a folder that lasts as long as the test. Its path is so short that a socket in it
// can be named; the path of t.TempDir contains the name of the test.
func ShortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "impi")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Pidfd returns a descriptor of a process that runs, by which AwaitEnd waits for it.
func Pidfd(t testing.TB, pid int) int {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatalf("process %d: %v", pid, err)
	}
	return fd
}

// AwaitEnd waits for the end of a process, which need not be a child, and closes its descriptor.
func AwaitEnd(t testing.TB, pidfd int) {
	t.Helper()
	defer unix.Close(pidfd)
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, -1)
		if err != unix.EINTR {
			return
		}
	}
}

// Threads counts the threads of this process.
func Threads(t testing.TB) int {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	return len(tasks)
}
