package mpi

import "github.com/openimpi/impi/internal/engine/file"

// The access modes of a file, with the values of the MPI ABI. One of ModeReadOnly, ModeReadWrite and
// ModeWriteOnly has to be given.
const (
	ModeAppend        = file.ModeAppend // all pointers begin at the end
	ModeCreate        = file.ModeCreate
	ModeDeleteOnClose = file.ModeDeleteOnClose
	ModeExclusive     = file.ModeExclusive // with ModeCreate: it must not exist
	ModeReadOnly      = file.ModeReadOnly
	ModeReadWrite     = file.ModeReadWrite
	ModeSequential    = file.ModeSequential // only the shared pointer is used
	ModeWriteOnly     = file.ModeWriteOnly
)

// Where Seek and SeekShared count from, and the displacement of a view that stands for where the
// shared pointer is, with the values of the MPI ABI.
const (
	SeekCur             = file.SeekCur
	SeekEnd             = file.SeekEnd
	SeekSet             = file.SeekSet
	DisplacementCurrent = file.DisplacementCurrent
)

// ErrFile means a file that is nil, or was closed.
var ErrFile = file.ErrFile

// File is a file that all members of a communicator have opened. Each reads and writes it by its
// own system calls, so that they need a file system that all of them see. Errors are returned and
// no handler is told of them; they have the classes of files (MPI ch. 14), and those of the
// communication between the members. Methods that all members call fail for all of them.
//
// A File may be used by several goroutines.
type File file.File

// FileView is how a member sees a file: from byte Displacement on there are items of Filetype, one
// after the other, which are made of Etypes and have holes that the member does not see. Offsets
// count Etypes. Datarep says how data lie in the file: native, internal or external32.
type FileView struct {
	Displacement    int64
	Etype, Filetype *Datatype
	Datarep         string
}
