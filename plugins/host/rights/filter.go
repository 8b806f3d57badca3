//go:build amd64 || arm64

package rights

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data; the arguments have 64 bits, lower half first.
const (
	atNumber  = 0
	atMachine = 4
	atArg0    = 16
	atArg1    = 24
	atArg2    = 32
	upper     = 4
)

var (
	pass    = bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
	forbid  = bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)}
	unknown = bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)}
)

func load(at uint32) bpf.Instruction { return bpf.LoadAbsolute{Off: at, Size: 4} }

// unless skips the next instructions unless the word that was loaded compares to val.
func unless(cond bpf.JumpTest, val uint32, skip int) bpf.Instruction {
	return bpf.JumpIf{Cond: cond, Val: val, SkipFalse: uint8(skip)}
}

// program is the filter. Numbers of system calls are compared one after another: the kernel finds
// out when it takes the filter which calls always pass, and does not run it for those.
func program(namespace bool) []bpf.Instruction {
	list := []bpf.Instruction{load(atMachine), bpf.JumpIf{Cond: bpf.JumpEqual, Val: machine, SkipTrue: 1}, forbid, load(atNumber)}
	if otherNumbers != 0 {
		list = append(list, unless(bpf.JumpGreaterOrEqual, otherNumbers, 1), forbid)
	}
	for _, number := range append(slices.Sorted(maps.Values(denied)), slices.Sorted(maps.Values(deniedHere))...) {
		list = append(list, unless(bpf.JumpEqual, uint32(number), 1), forbid)
	}
	// The flags of clone3 are in memory, where a filter cannot see them: programs that get this
	// error use clone instead.
	list = append(list, unless(bpf.JumpEqual, unix.SYS_CLONE3, 1), unknown)
	spaces := uint32(otherSpaces | userSpace)
	if namespace { // otherwise the process itself could not be started in its own namespace
		spaces = otherSpaces
	}
	flags := func(number uintptr, forbidden uint32) {
		list = append(list, unless(bpf.JumpEqual, uint32(number), 4), load(atArg0), unless(bpf.JumpBitsSet, forbidden, 1), forbid, pass)
	}
	flags(unix.SYS_CLONE, spaces)
	flags(unix.SYS_UNSHARE, otherSpaces|userSpace|timeSpace)
	// A personality with other rules for memory. The first value is a query, the second Linux's own
	// personality.
	list = append(list, unless(bpf.JumpEqual, unix.SYS_PERSONALITY, 5), load(atArg0),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0xffffffff, SkipTrue: 2}, bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1}, forbid, pass)
	list = append(list, unless(bpf.JumpEqual, unix.SYS_IOCTL, 2*len(typing)+2), load(atArg1))
	for _, command := range typing {
		list = append(list, unless(bpf.JumpEqual, command, 1), forbid)
	}
	list = append(list, pass)
	for _, number := range slices.Sorted(maps.Values(missing)) {
		list = append(list, unless(bpf.JumpEqual, uint32(number), 1), unknown)
	}
	// Setting limits of other processes is denied: a limit of processor time would end them.
	// Process 0 is the caller, and libraries write it so. A call without a new limit is a query.
	list = append(list, unless(bpf.JumpEqual, unix.SYS_PRLIMIT64, 8), load(atArg0), bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 5},
		load(atArg2), bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 2}, load(atArg2+upper), bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1}, forbid, pass)
	for _, c := range ofOthers {
		list = append(list, unless(bpf.JumpEqual, uint32(c.number), 6),
			load(atArg0), bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: c.which, SkipTrue: 2}, load(c.at), bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1}, forbid, pass)
	}
	return append(list, pass)
}

// filter keeps this thread and what it starts from the system calls in denied, and reports whether
// the kernel can do that. namespace says that the thread is to start a process in a user namespace.
func filter(namespace bool) (bool, error) {
	raw, err := bpf.Assemble(program(namespace))
	if err != nil {
		return false, fmt.Errorf("the filter of system calls: %w", err)
	}
	code := make([]unix.SockFilter, len(raw))
	for i, x := range raw {
		code[i] = unix.SockFilter{Code: x.Op, Jt: x.Jt, Jf: x.Jf, K: x.K}
	}
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	// The first flag prevents older kernels from slowing the process down because of the filter.
	for _, flags := range []uintptr{unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW, 0} {
		_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
		runtime.KeepAlive(code)
		switch {
		case errno == 0:
			return true, nil
		case errors.Is(errno, unix.ENOSYS), errors.Is(errno, unix.EPERM): // not built in; or not for this container
			return false, nil
		case errors.Is(errno, unix.EINVAL): // the flag is unknown, or filters are
		default:
			return false, fmt.Errorf("the filter of system calls: %w", errno)
		}
	}
	return false, nil
}
