package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// RunDir is a private directory for one process's sockets. Close removes it; if its process
// was killed, the next NewRunDir in the same place does.
type RunDir struct {
	Path string
	lock *os.File
}

// maxSocketPath is the longest path of a Unix socket, in bytes.
const maxSocketPath = 107

// socketName has the longest name that go-plugin makes below a directory for the control
// socket: two random numbers of up to ten digits.
const socketName = "/plugin-dir4294967295/plugin4294967295"

// NewRunDir makes a run directory below base and removes those of processes that have
// ended. An empty base means the user's runtime directory or, if there is none, the
// system's directory for temporary files.
func NewRunDir(base string) (*RunDir, error) {
	for _, b := range baseDirs(base) {
		parent := filepath.Join(b, "impi-"+strconv.Itoa(os.Geteuid()))
		if checkLength(filepath.Join(parent, "4294967295-999")) != nil && base == "" {
			continue // for example because of a long TMPDIR
		}
		d, err := newRunDir(parent)
		if err == nil || base != "" {
			return d, err
		}
	}
	return nil, &Error{Kind: ErrRunDir, Problem: "no directory for sockets can be made",
		Remedy: "set XDG_RUNTIME_DIR to a short path that is yours alone"}
}

func baseDirs(base string) []string {
	if base != "" {
		return []string{base}
	}
	var dirs []string
	if d := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(d) {
		dirs = append(dirs, d)
	}
	return append(dirs, os.TempDir(), "/tmp")
}

func newRunDir(parent string) (*RunDir, error) {
	if err := os.Mkdir(parent, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, runDirError(parent, err.Error())
	}
	if err := CheckRunDir(parent); err != nil {
		return nil, err
	}
	// A process that makes or removes directories holds the parent's lock, so that no
	// directory is removed between its creation and its own lock.
	all, err := lock(filepath.Join(parent, "lock"), unix.LOCK_EX)
	if err != nil {
		return nil, runDirError(parent, err.Error())
	}
	defer all.Close()
	sweep(parent)
	path, err := os.MkdirTemp(parent, strconv.Itoa(os.Getpid())+"-")
	if err != nil {
		return nil, runDirError(parent, err.Error())
	}
	d := &RunDir{Path: path}
	if d.lock, err = lock(filepath.Join(path, "lock"), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		os.RemoveAll(path)
		return nil, runDirError(path, err.Error())
	}
	return d, nil
}

// sweep removes the directories that no process has locked. It does not use process
// numbers, which are reused.
func sweep(parent string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		path := filepath.Join(parent, e.Name())
		if !e.IsDir() {
			continue
		}
		if l, err := lock(filepath.Join(path, "lock"), unix.LOCK_EX|unix.LOCK_NB); err == nil {
			os.RemoveAll(path)
			l.Close()
		}
	}
}

// lock opens and locks a file. The lock is released when the process ends.
func lock(path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), how); err != nil {
		f.Close()
		return nil, &fs.PathError{Op: "flock", Path: path, Err: err}
	}
	return f, nil
}

// Close removes the directory and everything in it. It holds the parent's lock: otherwise a process
// that sweeps could make the file of d's own lock again, between its removal and that of the
// directory.
func (d *RunDir) Close() error {
	all, err := lock(filepath.Join(filepath.Dir(d.Path), "lock"), unix.LOCK_EX)
	if err == nil {
		defer all.Close()
	}
	err = os.RemoveAll(d.Path) // without that lock, too
	d.lock.Close()
	return err
}

// CheckRunDir returns an error if path cannot be a Config's RunDir: a directory of ours
// that nobody else can enter, with a name short enough for a socket in it.
func CheckRunDir(path string) error {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return runDirError(path, err.Error())
	case !info.IsDir():
		return runDirError(path, "is not a directory")
	case info.Mode().Perm()&0o077 != 0:
		return runDirError(path, fmt.Sprintf("has mode %04o, must be 0700", info.Mode().Perm()))
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return runDirError(path, fmt.Sprintf("belongs to user %d", st.Uid))
	}
	return checkLength(path)
}

func checkLength(path string) error {
	if n := len(path) + len(socketName) - maxSocketPath; n > 0 {
		return &Error{Path: path, Kind: ErrRunDir,
			Problem: fmt.Sprintf("the path is %d bytes too long for a socket in it (the system's limit is %d)", n, maxSocketPath),
			Remedy:  "use a shorter run directory: set XDG_RUNTIME_DIR or run_dir"}
	}
	return nil
}

func runDirError(path, problem string) error {
	return &Error{Path: path, Kind: ErrRunDir, Problem: problem,
		Remedy: "use a directory of your own with mode 0700"}
}

// RunDirs returns the run directories of the processes of user uid below base or, if base
// is empty, in all places where NewRunDir would make one. base may also be the directory impi-UID
// that NewRunDir makes below it. If uid is this process's own user, directories of processes that
// have ended are removed first, unless another process is doing that. RunDirs does not wait for any
// lock.
func RunDirs(base string, uid int) (dirs []string) {
	seen := make(map[string]bool)
	for _, b := range baseDirs(base) {
		parent := filepath.Join(b, "impi-"+strconv.Itoa(uid))
		if base != "" && filepath.Base(b) == filepath.Base(parent) {
			parent = b
		}
		if seen[parent] {
			continue
		}
		seen[parent] = true
		if uid == os.Geteuid() {
			if CheckRunDir(parent) != nil {
				continue
			}
			trySweep(parent)
		}
		entries, err := os.ReadDir(parent)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if e.IsDir() {
				dirs = append(dirs, filepath.Join(parent, e.Name()))
			}
		}
	}
	return dirs
}

// trySweep sweeps unless another process makes or removes directories at this moment.
func trySweep(parent string) {
	all, err := lock(filepath.Join(parent, "lock"), unix.LOCK_EX|unix.LOCK_NB)
	if err != nil {
		return
	}
	defer all.Close()
	sweep(parent)
}
