package sdk

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/proto"
)

// What the process was started with.
var (
	started = os.Getenv(proto.CookieKey) == proto.CookieValue
	stdout  *os.File // for the handshake
	stderr  = os.Stderr
)

// init runs before main and, like all init functions, on the main thread.
func init() {
	if !started {
		return
	}
	// A plugin must print nothing to descriptor 1 but the handshake. What main, or
	// a C library, prints goes to the log.
	if fd, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 0); err == nil {
		stdout = os.NewFile(uintptr(fd), "/dev/stdout")
		_ = unix.Dup3(2, 1, 0) // where it fails, the node logs what comes behind the handshake
	}
	// Processes that we start must not keep the channel open.
	unix.CloseOnExec(proto.DescriptorFD)
	// The node asked the kernel to kill us when it dies. We prefer to be told, and
	// remove our socket files before we go; if that fails, we are killed. The request
	// belongs to this thread.
	_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGTERM), 0, 0, 0)
}
