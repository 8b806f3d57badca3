package file

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/engine/proc"
)

// ErrFile means a file that was never opened, or is closed.
var ErrFile = &mpierr.Error{Code: mpierr.File, Class: mpierr.File, Text: "invalid file"}

// fault returns an error of a class that has no sentinel.
func fault(class proc.Class, format string, args ...any) error {
	return &mpierr.Error{Code: class, Class: class, Text: fmt.Sprintf(format, args...)}
}

func ofSystem(err error) error {
	class := mpierr.IO
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errNoLocks):
		class = mpierr.UnsupportedOperation
	case errors.Is(err, fs.ErrNotExist):
		class = mpierr.NoSuchFile
	case errors.Is(err, fs.ErrExist):
		class = mpierr.FileExists
	case errors.Is(err, syscall.EROFS):
		class = mpierr.ReadOnly
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EBADF):
		class = mpierr.Access
	case errors.Is(err, syscall.ENOSPC):
		class = mpierr.NoSpace
	case errors.Is(err, syscall.EDQUOT):
		class = mpierr.Quota
	case errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.ENOTDIR):
		class = mpierr.BadFile
	}
	return fault(class, "%v", err)
}
