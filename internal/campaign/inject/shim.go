package inject

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// variable makes a program that calls Shim become the shim. Its value is the numbers of the calls
// to stop at.
const variable = "IMPI_INJECT_CALLS"

// Shim must be the first call of a program that uses Start: Start runs that program once more,
// which then installs the filter and becomes the program that is to be run.
func Shim() {
	list := os.Getenv(variable)
	if list == "" {
		return
	}
	fmt.Fprintln(os.Stderr, "inject:", become(list))
	os.Exit(127)
}

// become returns only if it fails.
func become(list string) error {
	var calls []uint32
	for word := range strings.SplitSeq(list, ",") {
		n, err := strconv.ParseUint(word, 10, 32)
		if err != nil {
			return err
		}
		calls = append(calls, uint32(n))
	}
	program, err := exec.LookPath(os.Args[1])
	if err != nil {
		return err
	}
	if err := os.Unsetenv(variable); err != nil {
		return err
	}
	env := os.Environ()
	unix.CloseOnExec(shimSocket)
	// The filter holds for this thread alone, which becomes the program; another one can send the
	// listener.
	runtime.LockOSThread()
	listener, err := filter(calls)
	if err != nil {
		return err
	}
	sent := make(chan error)
	go func() { sent <- unix.Sendmsg(shimSocket, []byte{1}, unix.UnixRights(listener), nil, 0) }()
	if err := <-sent; err != nil {
		return err
	}
	return syscall.Exec(program, os.Args[1:], env)
}

// shimSocket is the descriptor by which the shim sends the listener.
const shimSocket = 3

func receive(socket int) (int, error) {
	b, control := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, b, control, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return -1, err
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) != 1 {
		return -1, fmt.Errorf("the shim has sent no listener (%w)", err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return -1, fmt.Errorf("the shim has sent no listener (%w)", err)
	}
	return fds[0], nil
}
