package socket

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pipeHold is a thread that SIGPIPE does not reach. System calls that know no
// MSG_NOSIGNAL need one: the program may wait for that signal itself.
type pipeHold struct {
	before unix.Sigset_t
	failed bool
}

// pipeSignal is SIGPIPE as a set.
var pipeSignal = func() (s unix.Sigset_t) {
	s.Val[0] = 1 << (unix.SIGPIPE - 1)
	return s
}()

// holdSIGPIPE ties the goroutine to its thread and blocks the signal there.
func holdSIGPIPE() (h pipeHold) {
	runtime.LockOSThread()
	h.failed = unix.PthreadSigmask(unix.SIG_BLOCK, &pipeSignal, &h.before) != nil
	return h
}

// release undoes holdSIGPIPE, and takes the signal away if one came.
func (h *pipeHold) release(came bool) {
	if !h.failed && h.before.Val[0]&pipeSignal.Val[0] == 0 {
		if came {
			// The kernel's set of signals has 8 bytes wherever we run.
			var now unix.Timespec
			_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGTIMEDWAIT, uintptr(unsafe.Pointer(&pipeSignal)), 0,
				uintptr(unsafe.Pointer(&now)), 8, 0, 0)
		}
		_ = unix.PthreadSigmask(unix.SIG_UNBLOCK, &pipeSignal, nil)
	}
	runtime.UnlockOSThread()
}
