package bootstrap

import (
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// readTime is how long AwaitReader waits at most for a reader that is there and does not read.
const readTime = 10 * time.Second

// AwaitReader waits until the bytes that were written to a pipe have been read. A process manager
// that gets an abort ends before it has read the earlier output of its programs.
func AwaitReader(w io.Writer) {
	f, ok := w.(*os.File)
	if !ok {
		return
	}
	if at, err := f.Stat(); err != nil || at.Mode()&os.ModeNamedPipe == 0 {
		return
	}
	for end := time.Now().Add(readTime); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		unread := 0
		raw, err := f.SyscallConn()
		if err == nil {
			_ = raw.Control(func(fd uintptr) {
				p := []unix.PollFd{{Fd: int32(fd)}}
				if _, e := unix.Poll(p, 0); e == nil && p[0].Revents&unix.POLLERR != 0 {
					return // the other end is closed
				}
				unread, err = unix.IoctlGetInt(int(fd), unix.TIOCINQ)
			})
		}
		if err != nil || unread == 0 {
			return
		}
	}
}
