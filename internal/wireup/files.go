package wireup

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// WrittenFile is the error of a file that a proc would write, and another process writes.
type WrittenFile struct {
	Path string
	PID  int // of the other process; 0: not known, as on another machine
}

func (w *WrittenFile) Error() string {
	if w.PID == 0 {
		return w.Path + " is written by another job"
	}
	return fmt.Sprintf("%s is written by process %d, of another job", w.Path, w.PID)
}

// Claim makes a file that is open for writing this process's own until it closes the file or ends,
// or returns a WrittenFile. On file systems that have no locks it does nothing.
func Claim(f *os.File) error {
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &lock); !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES) {
		return nil
	}
	if err := claimed(f); err != nil {
		return err
	}
	return &WrittenFile{Path: f.Name()} // it has just ended
}

// Claimed returns a WrittenFile if another process has claimed the file at a path.
func Claimed(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil // there is none, or it is another user's
	}
	defer f.Close() // no lock of this process is lost by that: nodes claim no files
	return claimed(f)
}

func claimed(f *os.File) error {
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if unix.FcntlFlock(f.Fd(), unix.F_GETLK, &lock) != nil || lock.Type == unix.F_UNLCK {
		return nil
	}
	w := &WrittenFile{Path: f.Name()}
	if pid := int(lock.Pid); pid > 0 {
		if _, err := os.Stat("/proc/" + strconv.Itoa(pid)); err == nil {
			w.PID = pid
		}
	}
	return w
}
