package inject

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// data is what the kernel says of a call: struct seccomp_data.
type data struct {
	nr   int32
	arch uint32
	ip   uint64
	args [6]uint64
}

// notification is struct seccomp_notif: a thread waits in a call.
type notification struct {
	id    uint64
	pid   uint32 // of the thread
	flags uint32
	data  data
}

// response is struct seccomp_notif_resp.
type response struct {
	id    uint64
	value int64
	errno int32 // negative
	flags uint32
}

var arches = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// Missing returns the reason why calls cannot be made to fail on this machine, or nil if they can.
func Missing() error {
	if arches[runtime.GOARCH] == 0 {
		return fmt.Errorf("system calls of %s are not known here", runtime.GOARCH)
	}
	action := uint32(unix.SECCOMP_RET_USER_NOTIF)
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action))); e != 0 {
		return fmt.Errorf("the kernel has no seccomp with user notification: %w", e)
	}
	// The kernel checks flags before the filter, which is missing here.
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, filterFlags, 0); e != unix.EFAULT {
		return fmt.Errorf("seccomp cannot have signals wait: %w", e)
	}
	// Sandboxes may refuse what short writes need.
	self, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return fmt.Errorf("pidfd_open: %w", err)
	}
	defer unix.Close(self)
	fd, err := unix.PidfdGetfd(self, self, 0)
	if err != nil {
		return fmt.Errorf("pidfd_getfd: %w", err)
	}
	_ = unix.Close(fd)
	if err := peek(os.Getpid(), uint64(uintptr(unsafe.Pointer(&action))), make([]byte, 4)); err != nil {
		return fmt.Errorf("process_vm_readv: %w", err)
	}
	return nil
}

// A thread whose call we have heard of waits although Go's runtime sends it signals: else the call
// would be repeated and counted twice.
const filterFlags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV

// filter makes the calling thread, and all processes that it starts, wait in these calls, and
// returns the listener that tells of them. There is no way back.
func filter(calls []uint32) (listener int, err error) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, fmt.Errorf("no_new_privs: %w", err)
	}
	// A[0] is the call's number, A[4] the architecture.
	code := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 4},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: arches[runtime.GOARCH], Jf: uint8(len(calls) + 1)},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
	}
	for i, nr := range calls {
		code = append(code, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: nr, Jt: uint8(len(calls) - i)})
	}
	code = append(code,
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF})
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	fd, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, filterFlags, uintptr(unsafe.Pointer(&program)))
	if e != 0 {
		return -1, fmt.Errorf("seccomp: %w", e)
	}
	return int(fd), nil
}

// numbers are the numbers of the calls with these names, and execve's, by which processes are
// known.
func numbers(names []string) []uint32 {
	list := []uint32{unix.SYS_EXECVE}
	for _, s := range table {
		if slices.Contains(names, s.name) && !slices.Contains(list, uint32(s.nr)) {
			list = append(list, uint32(s.nr))
		}
	}
	return list
}

// await waits for a call and returns it, nil if that has gone meanwhile, or false when no process
// with the filter is left.
func await(listener int) (*notification, bool) {
	poll := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
	if n, err := unix.Poll(poll, -1); err != nil || n == 0 {
		return nil, true
	}
	if poll[0].Revents&unix.POLLIN == 0 {
		return nil, poll[0].Revents&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) == 0
	}
	var n notification
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n))); e != 0 {
		return nil, true // it has died, or a signal came
	}
	return &n, true
}

// answer ends a wait. That the thread has died meanwhile does not matter.
func answer(listener int, r response) {
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&r)))
}
