// Package keyfile judges files with secrets.
package keyfile

import (
	"io/fs"
	"os"
	"syscall"
)

// Private reports whether a file is one for a secret: only its owner can read it, or it is root's
// and this process, which is another user's, can read it by its group. That is how Kubernetes gives
// a secret to a container.
func Private(info fs.FileInfo) bool {
	owner, known := info.Sys().(*syscall.Stat_t)
	return private(info.Mode().Perm(), known && owner.Uid == 0, os.Geteuid() == 0)
}

func private(mode fs.FileMode, ofRoot, asRoot bool) bool {
	if ofRoot && !asRoot {
		return mode&0o027 == 0
	}
	return mode&0o077 == 0
}
