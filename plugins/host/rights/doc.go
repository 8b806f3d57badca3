// Package rights takes from the thread that starts a plugin, and so from the plugin, what plugins
// do not need. docs/security.md has a table of what is left.
package rights

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// SignalsSince is the version of Landlock from which on a plugin can send no signals to processes
// outside.
const SignalsSince = signalsSince

// ErrNamespace is wrapped when the kernel lets this process make no user namespace.
var ErrNamespace = errors.New("no user namespace can be made")

// Restrictions describes the rights that a plugin is to have.
type Restrictions struct {
	// Writable are the folders below which the plugin may change files, if the kernel has Landlock.
	// Paths that are no folders, or cannot be entered, are left out.
	Writable []string

	// Namespace gives the plugin a user namespace of its own, which has only this process's user
	// and group. /proc must be writable for that.
	Namespace bool
}

// Enforced describes what the kernel enforces of Restrictions.
type Enforced struct {
	Landlock int  // the version of Landlock; 0: none
	Filter   bool // a filter of system calls
}

// Restrict removes rights that plugins do not need from this thread and the processes that it
// starts. This can never be undone. The caller has locked the thread, which is not the process's
// first one, and lets it end. The processes that it starts gain no rights by programs that they
// execute, which every Linux can enforce; other restrictions are left out where the kernel does not
// support them. It does not block.
func Restrict(w Restrictions) (Enforced, error) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return Enforced{}, fmt.Errorf("no new privileges: %w", err)
	}
	version, err := landlock(w.Writable)
	if err != nil {
		return Enforced{}, err
	}
	filtered, err := filter(w.Namespace)
	return Enforced{version, filtered}, err
}

// Prepare makes a process start in a user namespace of its own, if w has Namespace.
func (w Restrictions) Prepare(attr *syscall.SysProcAttr) {
	if !w.Namespace {
		return
	}
	attr.Cloneflags |= unix.CLONE_NEWUSER
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: unix.Geteuid(), HostID: unix.Geteuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: unix.Getegid(), HostID: unix.Getegid(), Size: 1}}
}

// Explain adds ErrNamespace to the error of a start if the cause is that the kernel lets this
// process make no user namespace.
func (w Restrictions) Explain(err error) error {
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
