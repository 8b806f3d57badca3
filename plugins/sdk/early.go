package sdk

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/proto"
)

// The state with which the process was started.
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
	// Only the handshake may be printed to descriptor 1. Anything else that main or a C
	// library prints there goes to the log.
	if fd, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 0); err == nil {
		stdout = os.NewFile(uintptr(fd), "/dev/stdout")
		_ = unix.Dup3(2, 1, 0) // if this fails, the node logs what comes after the handshake
	}
	// Child processes must not keep the channel open.
	unix.CloseOnExec(proto.DescriptorFD)
	// The node has asked the kernel to kill us when it dies. Replace that by a signal, so
	// that we can remove our socket files first; if this fails we are killed. The request
	// belongs to this thread.
	_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGTERM), 0, 0, 0)
}
