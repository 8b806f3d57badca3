package rights

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The rights of Landlock that plugins have only below writable folders, by the version of Landlock
// that brought them.
const (
	changes1 = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	changes2 = changes1 | unix.LANDLOCK_ACCESS_FS_REFER
	changes3 = changes2 | unix.LANDLOCK_ACCESS_FS_TRUNCATE

	devices = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK // rights that plugins have nowhere

	signalsSince = 6 // first version that stops signals to processes outside
)

// landlock restricts changes to files below writable, and signals and the inspection of processes
// to what this thread has started. It returns the version of the kernel's Landlock, or 0 if it has
// none.
func landlock(writable []string) (int, error) {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, nil // the kernel has no Landlock, or it is turned off
	}
	changes := map[uintptr]uint64{1: changes1, 2: changes2}[version]
	if version > 2 {
		changes = changes3
	}
	rules := unix.LandlockRulesetAttr{Handled_access_fs: changes}
	if version >= signalsSince {
		rules.Scoped = unix.LANDLOCK_SCOPE_SIGNAL
	}
	set, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&rules)), unsafe.Sizeof(rules), 0)
	if errno != 0 {
		return 0, fmt.Errorf("Landlock: %w", errno)
	}
	defer unix.Close(int(set))
	for _, dir := range writable {
		if err := allow(int(set), dir, changes&^devices); err != nil {
			return 0, fmt.Errorf("Landlock: %s: %w", dir, err)
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, set, 0, 0); errno != 0 {
		return 0, fmt.Errorf("Landlock: %w", errno)
	}
	return int(version), nil
}

// allow allows changes below a folder, if there is one.
func allow(set int, dir string, changes uint64) error {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EACCES) {
			return nil
		}
		return err
	}
	defer unix.Close(fd)
	rule := unix.LandlockPathBeneathAttr{Allowed_access: changes, Parent_fd: int32(fd)}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}
