package socket

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pipeHold is a thread on which SIGPIPE is blocked. System calls without MSG_NOSIGNAL need
// one, since the program may handle that signal itself.
type pipeHold struct {
	before unix.Sigset_t
	failed bool
}

var pipeSignal = func() (s unix.Sigset_t) {
	s.Val[0] = 1 << (unix.SIGPIPE - 1)
	return s
}()

// holdSIGPIPE locks the goroutine to its thread and blocks the signal there.
func holdSIGPIPE() (h pipeHold) {
	runtime.LockOSThread()
	h.failed = unix.PthreadSigmask(unix.SIG_BLOCK, &pipeSignal, &h.before) != nil
	return h
}

// release undoes holdSIGPIPE, and removes the signal if one came.
func (h *pipeHold) release(came bool) {
	if !h.failed && h.before.Val[0]&pipeSignal.Val[0] == 0 {
		if came {
			// The kernel's signal set has 8 bytes on all our platforms.
			var now unix.Timespec
			_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGTIMEDWAIT, uintptr(unsafe.Pointer(&pipeSignal)), 0,
				uintptr(unsafe.Pointer(&now)), 8, 0, 0)
		}
		_ = unix.PthreadSigmask(unix.SIG_UNBLOCK, &pipeSignal, nil)
	}
	runtime.UnlockOSThread()
}
