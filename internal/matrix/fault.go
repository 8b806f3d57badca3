package matrix

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// descendants lists the processes below pid.
func descendants(pid int) []int {
	var all []int
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, f := range files {
		b, _ := os.ReadFile(f) // a process that has ended has no children
		for _, s := range strings.Fields(string(b)) {
			if child, err := strconv.Atoi(s); err == nil {
				all = append(append(all, child), descendants(child)...)
			}
		}
	}
	return all
}

// isPlugin tells whether a process is a transport plugin.
func isPlugin(pid int) bool {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && bytes.Contains(env, []byte("IMPI_TRANSPORT_PLUGIN="))
}

// errNothing says that there was nothing to break.
var errNothing = errors.New("there was nothing of that kind")

// killPlugins kills every transport plugin of a job, and tells how many.
func killPlugins(pid int) (killed int, err error) {
	for _, p := range descendants(pid) {
		if isPlugin(p) && unix.Kill(p, unix.SIGKILL) == nil {
			killed++
		}
	}
	if killed == 0 {
		return 0, errNothing
	}
	return killed, nil
}

// cut resets the TCP connections of a cell's links: those of the procs if they
// have the sockets, else those of the plugins, or of the nodes for channels.
// Nothing is told to their owners.
func cut(pid int, c Cell) (n int, err error) {
	whose := func(p int) bool { return !isPlugin(p) && !isNode(p) }
	switch {
	case c.Mode == Agents && c.Plane == "fd":
		whose = isNode
	case c.Plane != "fd":
		whose = isPlugin
	}
	for _, p := range descendants(pid) {
		if whose(p) {
			n += reset(p)
		}
	}
	if n == 0 {
		return 0, errNothing
	}
	return n, nil
}

// isNode tells whether a process is a node.
func isNode(pid int) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && slices.Contains(strings.Split(string(line), "\x00"), "-site")
}

// reset breaks the connected TCP sockets of a process whose both ends are links:
// not those to the job's server, which is no link.
func reset(pid int) (n int) {
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(pidfd)
	names, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, name := range names {
		target, _ := os.Readlink(name)
		number, err := strconv.Atoi(filepath.Base(name))
		if err != nil || !strings.HasPrefix(target, "socket:") {
			continue
		}
		fd, err := unix.PidfdGetfd(pidfd, number, 0)
		if err != nil {
			continue
		}
		if isLink(fd) && disconnect(fd) == nil {
			n++
		}
		_ = unix.Close(fd)
	}
	return n
}

// isLink tells whether a socket is a TCP connection between two sites' addresses.
func isLink(fd int) bool {
	a, err1 := unix.Getsockname(fd)
	b, err2 := unix.Getpeername(fd)
	x, ok1 := a.(*unix.SockaddrInet4)
	y, ok2 := b.(*unix.SockaddrInet4)
	return err1 == nil && err2 == nil && ok1 && ok2 && x.Addr != y.Addr && x.Addr[3] >= 2 && y.Addr[3] >= 2
}

// disconnect resets a connection: the peer gets an RST.
func disconnect(fd int) error {
	raw := make([]byte, unix.SizeofSockaddrInet4) // AF_UNSPEC
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&raw[0])), uintptr(len(raw)))
	if errno != 0 {
		return errno
	}
	return nil
}
