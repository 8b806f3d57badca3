package wireup

import (
	"bytes"
	"errors"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/board"
	"github.com/openimpi/impi/internal/skips"
)

// Memory is read from the process that has offered it, and only while that is the one with the key.
func TestFetch(t *testing.T) {
	l, err := NewLending()
	if err != nil {
		t.Fatal(err)
	}
	from := make([]byte, 2*maxFetch+5)
	for i := range from {
		from[i] = byte(i * 7)
	}
	addr := uint64(uintptr(unsafe.Pointer(&from[0])))
	to := make([]byte, len(from))
	if err := l.Fetch(&l.Key, addr, to); errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) {
		skips.NotRun(t, "the kernel does not let a process read its own memory", "allow process_vm_readv")
	} else if err != nil || !bytes.Equal(from, to) {
		t.Fatalf("not read: %v", err)
	}
	other := l.Key
	other.Cookie[1]++
	for what, err := range map[string]error{
		"another key":     l.Fetch(&other, addr, to[:10]),
		"no such address": l.Fetch(&l.Key, 8, to[:10]),
	} {
		if !errors.Is(err, ErrUnreadable) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Procs that are bound to different cores say so, or others would take them to share one.
func TestUsable(t *testing.T) {
	runtime.LockOSThread() // and never unlock: the thread ends with this goroutine
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	for cpu := range 1024 {
		if !all.IsSet(cpu) {
			continue
		}
		var one unix.CPUSet
		one.Set(cpu)
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			t.Fatal(err)
		}
		if got, want := usable(), (board.Cores{Count: 1, First: uint32(cpu)}); got != want {
			t.Errorf("bound to CPU %d: %+v", cpu, got)
		}
	}
	if err := unix.SchedSetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	if got := usable(); int(got.Count) != all.Count() {
		t.Errorf("not bound: %+v of %d", got, all.Count())
	}
}
