package launch

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Stdin returns the file that a process should read its standard input from, so
// that it gets what comes on src. That is src itself, unless it is a terminal:
// only the terminal's foreground group may read it, which a process of ours is
// not in, so that its input is passed on through a pipe; and a starter in the
// background must not read either, so that nil is the answer. The caller closes
// the file, if it is not src, once the process has been started.
func Stdin(src *os.File) (*os.File, error) {
	if src == nil || !terminal(src) {
		return src, nil
	}
	if !foreground(src) {
		return nil, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	go func() {
		_, _ = io.Copy(w, src) // ends with the terminal, or with the process that reads
		_ = w.Close()
	}()
	return r, nil
}

func control(f *os.File, fn func(fd int)) {
	if c, err := f.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) { fn(int(fd)) })
	}
}

func terminal(f *os.File) (ok bool) {
	control(f, func(fd int) {
		_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		ok = err == nil
	})
	return ok
}

func foreground(f *os.File) (ok bool) {
	control(f, func(fd int) {
		pgrp, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		ok = err == nil && pgrp == unix.Getpgrp()
	})
	return ok
}
