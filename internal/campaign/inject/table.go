package inject

import (
	"encoding/binary"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Fault is the result of a call that fails: an error, or fewer bytes.
type Fault string

// Short makes a call write half of its bytes, and return that number. All other faults are named
// like the error.
const Short Fault = "short"

var errnos = map[Fault]unix.Errno{
	"EMFILE": unix.EMFILE, "ENOSPC": unix.ENOSPC, "ENOMEM": unix.ENOMEM, "EINTR": unix.EINTR,
	"ECONNRESET": unix.ECONNRESET, "EIO": unix.EIO, "EAGAIN": unix.EAGAIN,
}

// Errno returns the error of a fault, or 0 for Short.
func (f Fault) Errno() unix.Errno { return errnos[f] }

type spec struct {
	name   string
	nr     uintptr
	faults []Fault // for any descriptor, or without one

	// Calls on a descriptor are distinguished by its type. Calls on other descriptors are not
	// counted.
	of   map[string][]Fault
	only func(d *data, tid int) bool // which calls count; nil: all
}

var (
	descriptor = []Fault{"EMFILE", "ENOMEM"}
	reading    = map[string][]Fault{socket: {"EINTR", "ECONNRESET", "ENOMEM"}, file: {"EINTR", "EIO"}, pipe: {"EINTR"}}
	writing    = map[string][]Fault{socket: {"EINTR", "ECONNRESET", "ENOMEM", Short}, file: {"EINTR", "ENOSPC", Short}, pipe: {"EINTR"}}
)

// table lists the calls. Those of Go's runtime for memory, threads and waiting are not in it: the
// runtime ends the process if they fail. So it does for some of its poller's, which are in it;
// package job knows the words that it says then.
var table = []spec{
	{name: "openat", nr: unix.SYS_OPENAT, faults: []Fault{"EMFILE", "ENOMEM", "EINTR"}, only: plain},
	{name: "openat create", nr: unix.SYS_OPENAT, faults: []Fault{"EMFILE", "ENOSPC"}, only: creating},
	{name: "socket", nr: unix.SYS_SOCKET, faults: descriptor},
	{name: "socketpair", nr: unix.SYS_SOCKETPAIR, faults: descriptor},
	{name: "accept4", nr: unix.SYS_ACCEPT4, faults: []Fault{"EMFILE", "ENOMEM", "EINTR"}},
	{name: "connect", nr: unix.SYS_CONNECT, faults: []Fault{"ECONNRESET", "ENOMEM"}},
	{name: "bind", nr: unix.SYS_BIND, faults: []Fault{"ENOMEM", "ENOSPC"}},
	{name: "listen", nr: unix.SYS_LISTEN, faults: []Fault{"ENOMEM"}},
	{name: "setsockopt", nr: unix.SYS_SETSOCKOPT, faults: []Fault{"ENOMEM"}},
	{name: "read", nr: unix.SYS_READ, of: reading},
	{name: "recvfrom", nr: unix.SYS_RECVFROM, of: reading},
	{name: "recvmsg", nr: unix.SYS_RECVMSG, of: reading},
	{name: "pread64", nr: unix.SYS_PREAD64, of: reading},
	{name: "write", nr: unix.SYS_WRITE, of: writing},
	{name: "writev", nr: unix.SYS_WRITEV, of: writing},
	{name: "sendto", nr: unix.SYS_SENDTO, of: writing},
	{name: "sendmsg", nr: unix.SYS_SENDMSG, of: writing},
	{name: "pwrite64", nr: unix.SYS_PWRITE64, of: map[string][]Fault{file: {"EINTR", "ENOSPC"}}},
	{name: "memfd_create", nr: unix.SYS_MEMFD_CREATE, faults: descriptor},
	{name: "ftruncate", nr: unix.SYS_FTRUNCATE, faults: []Fault{"ENOSPC", "EINTR"}},
	{name: "fallocate", nr: unix.SYS_FALLOCATE, faults: []Fault{"ENOSPC", "EINTR"}},
	{name: "mmap", nr: unix.SYS_MMAP, faults: []Fault{"ENOMEM"}, only: ofFile},
	{name: "pipe2", nr: unix.SYS_PIPE2, faults: descriptor},
	{name: "eventfd2", nr: unix.SYS_EVENTFD2, faults: descriptor},
	{name: "epoll_create1", nr: unix.SYS_EPOLL_CREATE1, faults: descriptor},
	{name: "epoll_ctl", nr: unix.SYS_EPOLL_CTL, faults: []Fault{"ENOMEM", "ENOSPC"}},
	{name: "timerfd_create", nr: unix.SYS_TIMERFD_CREATE, faults: descriptor},
	{name: "inotify_init1", nr: unix.SYS_INOTIFY_INIT1, faults: descriptor},
	{name: "pidfd_open", nr: unix.SYS_PIDFD_OPEN, faults: descriptor},
	{name: "pidfd_getfd", nr: unix.SYS_PIDFD_GETFD, faults: descriptor},
	{name: "fcntl dup", nr: unix.SYS_FCNTL, faults: []Fault{"EMFILE"}, only: duplicating},
	{name: "dup", nr: unix.SYS_DUP, faults: []Fault{"EMFILE"}},
	{name: "dup3", nr: unix.SYS_DUP3, faults: []Fault{"EINTR"}},
	{name: "ppoll", nr: unix.SYS_PPOLL, faults: []Fault{"EINTR", "ENOMEM"}},
	{name: "waitid", nr: unix.SYS_WAITID, faults: []Fault{"EINTR"}},
	{name: "wait4", nr: unix.SYS_WAIT4, faults: []Fault{"EINTR"}},
	{name: "flock", nr: unix.SYS_FLOCK, faults: []Fault{"EINTR", "ENOMEM"}},
	{name: "mkdirat", nr: unix.SYS_MKDIRAT, faults: []Fault{"ENOSPC", "ENOMEM"}},
	{name: "renameat2", nr: unix.SYS_RENAMEAT2, faults: []Fault{"ENOSPC"}},
	{name: "renameat", nr: unix.SYS_RENAMEAT, faults: []Fault{"ENOSPC"}},
	{name: "linkat", nr: unix.SYS_LINKAT, faults: []Fault{"ENOSPC"}},
	{name: "getdents64", nr: unix.SYS_GETDENTS64, faults: []Fault{"ENOMEM"}},
	{name: "process_vm_readv", nr: unix.SYS_PROCESS_VM_READV, faults: []Fault{"ENOMEM"}},
	{name: "clone", nr: unix.SYS_CLONE, faults: []Fault{"EAGAIN", "ENOMEM"}, only: forking},
	{name: "clone3", nr: unix.SYS_CLONE3, faults: []Fault{"EAGAIN", "ENOMEM"}, only: forking3},
	{name: "execve", nr: unix.SYS_EXECVE, faults: []Fault{"ENOMEM", "EMFILE"}},
}

// Types of descriptors.
const (
	socket = "socket"
	file   = "file"
	pipe   = "pipe"
)

// Faults returns the possible faults of a call with that name, as in Call.Name.
func Faults(name string) []Fault {
	name, of, _ := strings.Cut(name, "/")
	i := slices.IndexFunc(table, func(s spec) bool { return s.name == name })
	switch {
	case i < 0:
		return nil
	case of != "":
		return table[i].of[of]
	}
	return table[i].faults
}

// find returns the name of a call, "" if it does not count.
func find(d *data, tid int) string {
	for i := range table {
		s := &table[i]
		if int64(s.nr) != int64(d.nr) || s.only != nil && !s.only(d, tid) {
			continue
		}
		if s.of == nil {
			return s.name
		}
		if of := kindOf(tid, int(int32(d.args[0]))); s.of[of] != nil {
			return s.name + "/" + of
		}
	}
	return ""
}

func kindOf(tid, fd int) string {
	where, err := os.Readlink("/proc/" + strconv.Itoa(tid) + "/fd/" + strconv.Itoa(fd))
	switch {
	case err != nil:
		return ""
	case strings.HasPrefix(where, "socket:"):
		return socket
	case strings.HasPrefix(where, "pipe:"):
		return pipe
	case strings.HasPrefix(where, "/") && !strings.HasPrefix(where, "/dev/"):
		return file
	}
	return ""
}

func plain(d *data, _ int) bool    { return d.args[2]&unix.O_CREAT == 0 }
func creating(d *data, _ int) bool { return d.args[2]&unix.O_CREAT != 0 }
func ofFile(d *data, _ int) bool   { return d.args[3]&unix.MAP_ANONYMOUS == 0 }
func duplicating(d *data, _ int) bool {
	return d.args[1] == unix.F_DUPFD_CLOEXEC || d.args[1] == unix.F_DUPFD
}
func forking(d *data, _ int) bool { return d.args[0]&unix.CLONE_THREAD == 0 }

func forking3(d *data, tid int) bool {
	flags := make([]byte, 8)
	return peek(tid, d.args[0], flags) == nil && binary.NativeEndian.Uint64(flags)&unix.CLONE_THREAD == 0
}

// peek reads memory of a thread that waits in a call.
func peek(tid int, address uint64, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	local := []unix.Iovec{{Base: &b[0]}}
	local[0].SetLen(len(b))
	n, err := unix.ProcessVMReadv(tid, local, []unix.RemoteIovec{{Base: uintptr(address), Len: len(b)}}, 0)
	if err == nil && n != len(b) {
		err = unix.EFAULT
	}
	return err
}
