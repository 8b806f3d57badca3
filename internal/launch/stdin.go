package launch

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Stdin returns the file from which a process should read its standard input to get what comes from
// src. That is src itself, unless it is a terminal. Only the terminal's foreground group may read
// from it, to which our processes do not belong, so its input is passed on through a pipe. If this
// process is in the background it must not read either, and Stdin returns nil. The caller closes
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
