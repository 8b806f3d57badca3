package rights

import "golang.org/x/sys/unix"

const (
	machine      = unix.AUDIT_ARCH_AARCH64
	otherNumbers = 0 // arm64 has one form of system calls
)

// deniedHere are those of denied that other machines do not have.
var deniedHere map[string]uintptr
