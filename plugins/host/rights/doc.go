// Package rights takes from the thread that starts a plugin, and so from the plugin, what plugins do not
// need. docs/security.md has a table of what is left.
package rights

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// SignalsSince is the version of Landlock that keeps signals in.
const SignalsSince = signalsSince

// ErrNamespace is wrapped when the kernel lets this process make no user namespace.
var ErrNamespace = errors.New("no user namespace can be made")

// Wish is what a plugin is to have.
type Wish struct {
	// Writable are the folders below which it may change files, if the kernel has Landlock. What is no
	// folder, or cannot be entered, is left out.
	Writable []string

	// Namespace gives it a user namespace of its own, with this process's user and group in it alone.
	// /proc must be writable for that.
	Namespace bool
}

// Held is what the kernel enforces of it.
type Held struct {
	Landlock int  // the version of Landlock; 0: none
	Filter   bool // of system calls
}

// Restrict takes from this thread, and what it starts, what plugins do not need, and can never be undone.
// The caller has locked the thread, which is not the process's first one, and lets it end. What it starts
// gains no rights by programs that it executes, which every Linux can do; the rest is left out where the
// kernel cannot do it. It does not block.
func Restrict(w Wish) (Held, error) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return Held{}, fmt.Errorf("no new privileges: %w", err)
	}
	version, err := landlock(w.Writable)
	if err != nil {
		return Held{}, err
	}
	filtered, err := filter(w.Namespace)
	return Held{version, filtered}, err
}

// Prepare has a process be started in what it is to have of its own.
func (w Wish) Prepare(attr *syscall.SysProcAttr) {
	if !w.Namespace {
		return
	}
	attr.Cloneflags |= unix.CLONE_NEWUSER
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: unix.Geteuid(), HostID: unix.Geteuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: unix.Getegid(), HostID: unix.Getegid(), Size: 1}}
}

// Explain says of the error of a start whether the kernel lets this process make no user namespace.
func (w Wish) Explain(err error) error {
	if !w.Namespace || err == nil {
		return err
	}
	for _, refusal := range []error{unix.EPERM, unix.ENOSPC, unix.EUSERS, unix.EINVAL} {
		if errors.Is(err, refusal) && unix.Access("/proc/self/ns/user", unix.F_OK) == nil {
			return fmt.Errorf("%w: %w", ErrNamespace, err)
		}
	}
	return err
}
