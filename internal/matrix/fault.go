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

	"github.com/openimpi/impi/plugins/sdk/transports"
)

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

func isPlugin(pid int) bool {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && bytes.Contains(env, []byte("IMPI_TRANSPORT_PLUGIN="))
}

var errNothing = errors.New("there was nothing of that kind")

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

// cut breaks the connections of a cell's links: it resets TCP connections, shuts down Unix
// sockets, and drops datagrams until mend is called. The sockets are those of the procs if
// they have them, otherwise those of the plugins, or for channels those of the nodes.
func cut(pid int, c Cell, t Transport) (n int, mend func(), err error) {
	whose := func(p int) bool { return !isPlugin(p) && !isNode(p) }
	switch {
	case c.byAgents() && (c.Plane == string(transports.PlaneFD) || c.Plane == string(transports.PlanePeerSHM)):
		whose = isNode
	case c.Plane != string(transports.PlaneFD) && c.Plane != string(transports.PlanePeerSHM):
		whose = isPlugin
	}
	var deaf []int
	for _, p := range descendants(pid) {
		if !whose(p) {
			continue
		}
		sockets(p, func(fd int) (keep bool) {
			hit := hit(fd, t)
			if hit {
				n++
			}
			if keep = hit && t.Datagrams; keep {
				deaf = append(deaf, fd)
			}
			return keep
		})
	}
	if n == 0 {
		return 0, nil, errNothing
	}
	return n, func() {
		for _, fd := range deaf {
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0) // the socket had a filter
			_ = unix.Close(fd)
		}
	}, nil
}

func isNode(pid int) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && slices.Contains(strings.Split(string(line), "\x00"), "-site")
}

func hit(fd int, t Transport) bool {
	switch {
	case t.Datagrams:
		return isUDP(fd) && deafen(fd) == nil
	case t.Machine:
		return isLocalLink(fd, t.ConfigName) && unix.Shutdown(fd, unix.SHUT_RDWR) == nil
	}
	return isLink(fd) && disconnect(fd) == nil
}

// sockets calls f with a duplicate of each socket of a process; unless f returns true, it is
// closed.
func sockets(pid int, f func(fd int) (keep bool)) {
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
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
		if err == nil && !f(fd) {
			_ = unix.Close(fd)
		}
	}
}

// isLocalLink reports whether a socket is connected to the listener of a transport whose
// links stay on the machine: one end of each has the listener's address, a path.
func isLocalLink(fd int, transport string) bool {
	for _, address := range []func(int) (unix.Sockaddr, error){unix.Getsockname, unix.Getpeername} {
		a, err := address(fd)
		x, ok := a.(*unix.SockaddrUnix)
		if err == nil && ok && strings.HasSuffix(strings.TrimSuffix(x.Name, filepath.Ext(x.Name)), "-"+transport) {
			_, err = unix.Getpeername(fd) // a listener has no peer
			return err == nil
		}
	}
	return false
}

func isUDP(fd int) bool {
	protocol, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PROTOCOL)
	return err == nil && protocol == unix.IPPROTO_UDP
}

func deafen(fd int) error {
	nothing := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}} // accept 0 bytes of each datagram
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &nothing[0]})
}

// isLink reports whether a socket is a TCP connection between two hosts' addresses, other than to
// the server or between the nodes of a site.
func isLink(fd int) bool {
	a, err1 := unix.Getsockname(fd)
	b, err2 := unix.Getpeername(fd)
	x, ok1 := a.(*unix.SockaddrInet4)
	y, ok2 := b.(*unix.SockaddrInet4)
	if err1 != nil || err2 != nil || !ok1 || !ok2 || x.Addr == y.Addr {
		return false
	}
	return !slices.ContainsFunc([]*unix.SockaddrInet4{x, y}, func(at *unix.SockaddrInet4) bool {
		return at.Port == serverPort || at.Port == headPort || at.Addr[0] == 127 && at.Addr[3] < 2
	})
}

func disconnect(fd int) error {
	raw := make([]byte, unix.SizeofSockaddrInet4) // AF_UNSPEC
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&raw[0])), uintptr(len(raw)))
	if errno != 0 {
		return errno
	}
	return nil
}
